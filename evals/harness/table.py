"""Scores as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from harness.scores import Score, bootstrap, difference, over_tasks, too_easy


def results(scores: Sequence[Score], dropped: Mapping[str, str], agent: str, *, uncalibrated: bool, in_sight: bool) -> str:
    """The text of RESULTS.md."""
    easy = too_easy(scores)
    scores, dropped = [score for score in scores if score.task not in easy], {**dropped, **easy}
    arms = list(dict.fromkeys(score.arm for score in scores))
    parts = ["# Results", f"Assistant: `{agent.split()[0]}`. Score: time saved ÷ the expert's, 0 for a failed gate; means over tasks."]
    parts += ["**Not calibrated: these scores prove nothing.**"] * uncalibrated
    parts += ["**The scorer was within reach of the assistant.**"] * in_sight
    head = ("arm", "tasks", "score", "95 %", "slower or broken", "claim off by (median factor)", "minutes", "tokens")
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    parts.append("\n".join([*rows, *(_row(scores, arm) for arm in arms)]))
    for arm in arms[1:]:
        gain = difference(scores, arm, arms[0])
        if gain:
            interval = f" [{gain[1][0]:+.2f}, {gain[1][1]:+.2f}]" if gain[1] else ""
            parts.append(f"{arm} against {arms[0]}, paired by task: {gain[0]:+.2f}{interval}")
    gates = Counter((score.arm, gate) for score in scores for gate in score.failed_gates)
    if gates:
        parts.append("\n".join(["Failed gates:", "", *(f"- {arm}: {gate} ({count})" for (arm, gate), count in sorted(gates.items()))]))
    if dropped:
        parts.append("\n".join(["Dropped:", "", *(f"- {name}: {reason}" for name, reason in sorted(dropped.items()))]))
    return "\n\n".join(parts) + "\n"


def _row(scores: Sequence[Score], arm: str) -> str:
    ours = [score for score in scores if score.arm == arm]
    means = list(over_tasks(scores, arm).values())
    interval = bootstrap(means)
    errors = sorted(score.claim_error for score in ours if score.claim_error is not None)
    off = f"{2.718281828 ** errors[len(errors) // 2]:.2f}" if errors else "not measured"
    tokens = [score.tokens for score in ours if score.tokens is not None]
    cells = (
        arm,
        len(means),
        f"{sum(means) / len(means):.2f}" if means else "not measured",
        f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else "one task",
        sum(1 for score in ours if score.failed_gates or (score.measured and score.measured.high < 1.0)),
        off,
        f"{sum(score.minutes for score in ours) / len(ours):.1f}",
        f"{sum(tokens) / len(tokens):,.0f}" if tokens else "not measured",
    )
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
