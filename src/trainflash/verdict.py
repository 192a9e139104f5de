"""Speed and fidelity together: accept, reject, inconclusive or in need of an agreement. Whatever is missing never counts in favour."""

from __future__ import annotations

import math

from trainflash.schema import AGREEABLE, CONSENTS, OCCASIONS, Fidelity, SpeedVerdict, Verdict, training_change
from trainflash.stats import LEAST_GAIN, LEAST_STARTS, TAIL_HARM, tail_is_worse

# Checks of which one at least must have passed before a change that the owner agreed to is accepted.
_LEARNS = frozenset({
    "loss", "first loss", "losses in distribution", "gradients", "gradient norms in distribution", "weights", "metric", "convergence",
})  # fmt: skip


def judge(
    speed: SpeedVerdict | None,
    fidelity: Fidelity | None,
    *,
    allowed: frozenset[str] = frozenset(),
    protection: str = "",
    spent_s: float = 0.0,
) -> Verdict:
    """The verdict on one candidate. `allowed` names the changes in kind that the owner agreed to.

    Accept needs an accepted speed-up with sound figures *and* a fidelity of `same`, of `close` with "numerics" allowed (which it is unless
    the owner asks for every bit), or of `changed` with every changed name allowed. A clear no of either side is a reject; anything missing
    is inconclusive. What would be accepted with an agreement that the owner can give, and has not, needs that agreement; so does what was
    not timed for want of it alone.
    """
    lacks = lacking(fidelity, allowed)
    untimed = speed is None and bool(lacks)
    against, missing = [], []
    for found in (None if untimed else _of_speed(speed, fidelity), _of_fidelity(fidelity, allowed | lacks)):
        if found is not None:
            (against if found[0] else missing).append(found[1])
    if against:
        verdict, reasons = "reject", [*against, *missing, *_agreement(fidelity, lacks)]
    elif missing or fidelity is None:
        verdict, reasons = "inconclusive", [*missing, *_agreement(fidelity, lacks)]
    elif lacks:
        told = speed.reason if speed else "its speed was not measured, for nobody agreed to it yet"
        verdict, reasons = "needs_agreement", [*_agreement(fidelity, lacks), told, *(_slow_tails(speed) if speed else ())]
    else:
        assert speed is not None
        told = training_change(fidelity, "accept").sentence if fidelity.verdict == "changed" else "trains the same"
        verdict, reasons = "accept", [speed.reason, f"{told}{_sameness(fidelity)}", *_slow_tails(speed)]
    return Verdict(
        verdict=verdict,  # type: ignore[arg-type]
        speedup=speed.speedup if speed else None,
        fidelity=fidelity,
        starts=speed.speedup.starts if speed and speed.speedup else 0,
        reasons=tuple(reasons),
        protection=protection,
        spent_s=spent_s,
        unit=speed.unit if speed else "step",
        whole_run=speed.whole_run if speed else None,
        resources=speed.resources if speed else None,
        least_detectable=speed.least_detectable if speed else None,
        starts_needed=speed.starts_needed if speed else None,
        needs=() if against else tuple(sorted(lacks)),
    )


def agreed_to(judged: Verdict | None) -> frozenset[str]:
    """The changes in kind that an accepted verdict rests on: the owner has agreed to them."""
    if judged is None or judged.verdict != "accept" or judged.fidelity is None:
        return frozenset()
    return _changes(judged.fidelity) | _unjudged(judged.fidelity)


def _changes(fidelity: Fidelity) -> frozenset[str]:
    """What changed in kind, rounding among it."""
    return frozenset(fidelity.changed) | ({"numerics"} if fidelity.verdict == "close" else frozenset())


def lacking(fidelity: Fidelity | None, allowed: frozenset[str] = frozenset()) -> frozenset[str]:
    """Agreements that the owner can give by name, and has not, with which nothing in `fidelity` forbids acceptance; empty: none would do.

    `fidelity` is to be one that was compared as if they were given. Rounding is no such change: it is refused only where the owner asks for
    every bit.
    """
    if fidelity is None or fidelity.verdict == "inconclusive":
        return frozenset()
    changed = frozenset(fidelity.changed) if fidelity.verdict == "changed" else frozenset()
    lacks = (changed & AGREEABLE | _unjudged(fidelity)) - allowed
    return lacks if lacks and may_be_timed(fidelity, allowed=allowed | lacks) else frozenset()


def waits_for(judged: Verdict | None, *, allowed: frozenset[str] = frozenset()) -> frozenset[str]:
    """The changes in kind for want of whose agreement alone a candidate was not accepted, or not timed; empty: for another reason."""
    if judged is None or judged.fidelity is None:
        return frozenset()
    untimed = judged.verdict == "reject" and judged.speedup is None
    if judged.verdict != "needs_agreement" and not untimed:
        return frozenset()
    missing = (_changes(judged.fidelity) | _unjudged(judged.fidelity)) - allowed
    return missing if may_be_timed(judged.fidelity, allowed=allowed | missing) else frozenset()


def may_be_timed(fidelity: Fidelity, *, allowed: frozenset[str] = frozenset()) -> bool:
    """Whether nothing in the fidelity forbids acceptance under these agreements: what could not be accepted anyway is never timed."""
    return _of_fidelity(fidelity, allowed) is None


def _of_speed(speed: SpeedVerdict | None, fidelity: Fidelity | None) -> tuple[bool, str] | None:
    """What speaks against the speed: (it is a clear no, why); None: nothing."""
    if speed is None:
        return False, "speed: not measured"
    if speed.decision == "reject":
        unrun = _never_ran(fidelity)
        if unrun and speed.speedup is not None and speed.speedup.ci_high >= 1.0:
            where = f"{', '.join(unrun[:3])}{' and more' if len(unrun) > 3 else ''}"
            return False, f"speed: {speed.reason}; but what the change is about never ran there ({where}): a larger --budget gets further"
        return True, f"speed: {speed.reason}"
    for name, tail, high in _tails(speed):
        if tail_is_worse(high):
            return True, f"speed: the {name} step got slower, {tail:.2f} times as fast (at best {high:.2f})"
    if speed.decision != "accept":
        return False, f"speed: {speed.reason or speed.decision}"
    figures = speed.speedup
    if figures is None or not all(math.isfinite(value) for value in (figures.mean, figures.ci_low, figures.ci_high)):
        return False, "speed: accepted without figures"
    if figures.starts < LEAST_STARTS:
        return False, f"speed: {figures.starts} starts, at least {LEAST_STARTS} are needed"
    if not LEAST_GAIN < figures.ci_low <= figures.mean <= figures.ci_high:
        return False, f"speed: the interval [{figures.ci_low:.3f}, {figures.ci_high:.3f}] is not above {LEAST_GAIN}"
    return None


def _never_ran(fidelity: Fidelity | None) -> list[str]:
    """Changed lines that the compared updates did not come to, such as those of an evaluation that comes later."""
    return [] if fidelity is None else [name for name in fidelity.not_seen if name not in OCCASIONS]


def _unjudged(fidelity: Fidelity) -> frozenset[str]:
    """`unseen`, where a part of the change never ran in what was compared: no comparison speaks for it."""
    return frozenset({"unseen"} if _never_ran(fidelity) else ())


def _tails(speed: SpeedVerdict) -> list[tuple[str, float, float]]:
    figures = speed.speedup
    pairs = [] if figures is None else [("p95", figures.p95, figures.p95_high), ("p99", figures.p99, figures.p99_high)]
    return [(name, tail, high) for name, tail, high in pairs if tail is not None and high is not None]


def _slow_tails(speed: SpeedVerdict) -> list[str]:
    """Slow steps that look slower, and may not be: said, for they forbid nothing."""
    return [
        f"the {name} step was {tail:.2f} times as fast, at best {high:.2f}: these starts do not tell whether it is slower"
        for name, tail, high in _tails(speed)
        if tail < TAIL_HARM
    ]


def _of_fidelity(fidelity: Fidelity | None, allowed: frozenset[str]) -> tuple[bool, str] | None:
    """What speaks against the fidelity: (it is a clear no, why); None: nothing."""
    if fidelity is None:
        return False, "fidelity: not checked"
    why = "; ".join(fidelity.reasons)
    if fidelity.verdict == "inconclusive":
        return False, f"fidelity: {why or 'inconclusive'}"
    if fidelity.verdict == "changed" and "failed" in fidelity.changed:
        return True, f"fidelity: the candidate failed{': ' + why if why else ''}"
    if fidelity.updates <= 0 or not any(check.ok for check in fidelity.checks):
        return False, "fidelity: nothing was compared"
    delta = fidelity.mean_abs_loss_delta
    if delta is None or not math.isfinite(delta):
        return False, "fidelity: no losses were compared"
    if fidelity.verdict == "same":
        return (False, f"fidelity: {', '.join(fidelity.changed)} changed, which is not the same") if fidelity.changed else None
    changed = _changes(fidelity)
    agreed = allowed & set(CONSENTS)
    agreed |= {"numerics"} if "precision" in agreed else set()
    if not changed:
        return True, f"fidelity: changed in a way that has no name{': ' + why if why else ''}"
    refused = sorted(changed - agreed)
    if refused:
        names = ", ".join(refused)
        word = "nobody can agree to that" if set(refused) - set(CONSENTS) else "the owner did not agree to that"
        word = "the owner asks for every bit" if refused == ["numerics"] else word
        return True, f"fidelity: {names} changed, and {word}{': ' + why if why else ''}"
    if fidelity.not_judged and not any(check.ok for check in fidelity.checks if check.name in _LEARNS):
        mend = "give --metric or --convergence" if not any(check.name == "metric" for check in fidelity.checks) else "name fewer changes"
        return False, f"fidelity: nothing shows that it still learns the same after {', '.join(sorted(changed))} changed; {mend}"
    return None


def _agreement(fidelity: Fidelity | None, lacks: frozenset[str]) -> list[str]:
    """What the owner has to agree to, and what exactly changes."""
    if fidelity is None or not lacks:
        return []
    what = "".join(f"; {reason}" for reason in fidelity.reasons if not reason.startswith("not judged: "))
    return [f"needs agreement: {', '.join(sorted(lacks))}{what}{_unseen(fidelity)}"]


def _unseen(fidelity: Fidelity) -> str:
    unseen = f"; not seen: {', '.join(fidelity.not_seen)}" if fidelity.not_seen else ""
    unseen += f"; not judged: {', '.join(fidelity.not_judged)}" if fidelity.not_judged else ""
    return unseen + "".join(f"; {note}" for note in fidelity.notes)


def _sameness(fidelity: Fidelity) -> str:
    unseen = _unseen(fidelity)
    if fidelity.verdict == "same":
        return f": equal over {fidelity.updates} updates{unseen}"
    if not set(fidelity.changed) - {"numerics"}:
        return f": equal but for rounding over {fidelity.updates} updates{unseen}"
    return f", over {fidelity.updates} updates{unseen}"
