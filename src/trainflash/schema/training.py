"""What a change does to the training, in the words that every answer uses: one vocabulary and one sentence, made here alone."""

from __future__ import annotations

from dataclasses import dataclass

from trainflash.schema.verdicts import Check, Fidelity

SAME, FAILED = "same training", "failed"
# By the name that `Fidelity.changed` holds, which for those that an owner can agree to is also the name of the agreement.
KINDS_OF_CHANGE = {
    "numerics": "other rounding",
    "precision": "other precision",
    "order": "other order",
    "samples": "other data",
    "targets": "other targets",
    "randomness": "other random draws",
    "random": "other random streams",
    "batch": "other batch size",
    "shape": "other input shapes",
    "updates": "other number of updates",
    "schedule": "other schedule",
    "optimizer": "other optimizer",
    "clipping": "other clipping",
    "coverage": "other parameters trained",
    "mode": "other train or eval mode",
    "evaluation": "other evaluation",
    "checkpoint": "other checkpoints",
    "unseen": "changed lines that never ran",
    "cadence": "other times of evaluation, checkpoints or logging",
    "loss": "other losses",
    "gradients": "other gradients",
    "weights": "other weights",
    "metric": "other metric",
    "convergence": "other end of the training",
    "work": "other work while it is timed",
    FAILED: "failed",
}
_AGREED = {"accept": "was agreed to", "needs_agreement": "needs agreement"}  # by the verdict that rests on it
# Checks that count: what they count stands in the place of their change's own words, as fewer or more of it where both counts are known.
_COUNTED = {
    "updates": ("updates", "updates"),
    "evaluation cadence": ("cadence", "evaluations"),
    "checkpoint cadence": ("cadence", "checkpoints"),
    "log cadence": ("cadence", "log lines"),
}


@dataclass(frozen=True)
class TrainingChange:
    """The answer's `training`: the sentence, and the kinds of change in it by their words (`same training` alone where there is none)."""

    sentence: str
    kinds: tuple[str, ...]


def training_change(fidelity: Fidelity | None, verdict: str = "") -> TrainingChange:
    """What the candidate does to the training. `verdict`: the one that rests on an agreement, if one does."""
    if fidelity is None:
        return TrainingChange("fidelity not measured", ())
    kinds = _kinds(fidelity)
    if fidelity.verdict == "same":
        return TrainingChange("trains the same", (SAME,))
    if fidelity.verdict == "close":
        return TrainingChange("trains the same but for rounding", kinds or (KINDS_OF_CHANGE["numerics"],))
    beside = kinds if fidelity.verdict == "inconclusive" else tuple(kind for kind in kinds if kind != KINDS_OF_CHANGE["numerics"])
    told = {"changed": "trains differently", "inconclusive": "fidelity unknown"}[fidelity.verdict]
    if verdict in _AGREED and fidelity.verdict == "changed":
        return TrainingChange(f"trains the same but for what {_AGREED[verdict]}: {', '.join(beside) or 'rounding'}", kinds)
    return TrainingChange(told + (f": {', '.join(beside)}" if beside else ""), kinds)


def _kinds(fidelity: Fidelity) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for name in fidelity.changed for word in _words(name, fidelity.checks)))


def _words(name: str, checks: tuple[Check, ...]) -> list[str]:
    failed = [check for check in checks if check.ok is False and _COUNTED.get(check.name, ("", ""))[0] == name]
    return [_counted(check) for check in failed] or [KINDS_OF_CHANGE.get(name, f"other {name}")]


def _counted(check: Check) -> str:
    what = _COUNTED[check.name][1]
    old, new = check.counts or (0, 0)
    return f"{'fewer' if new < old else 'more' if new > old else 'other'} {what}"
