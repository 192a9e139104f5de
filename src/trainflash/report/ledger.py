"""The ledger in words, the same in every medium: what each source of changes earned, what it cost, when that is paid back."""

from __future__ import annotations

from collections.abc import Sequence

from trainflash.report import figures
from trainflash.schema.authors import Earned

TITLE = "What each source earned and cost"
HEAD = ("Source", "Tried", "Kept", "Speed-up", "Minutes", "Dollars", "Paid back after")
NOTE = (
    "Minutes are those of measuring, and of an author's writing. Paid back: hours of the training as it was, after which they are won back."
)


def rows(lines: Sequence[Earned]) -> list[tuple[str, ...]]:
    """One row a source, in the words of `HEAD`."""
    return [
        (
            each.source,
            f"{each.tried} of {figures.count(each.attempts, 'attempt')}" if each.source == "author" else str(each.tried),
            str(each.accepted),
            figures.times(each.speedup) if each.speedup is not None else "none",
            f"{each.measuring_minutes + each.writing_minutes:.1f}",
            _dollars(each),
            figures.seconds(3600 * each.paid_back_hours) if each.paid_back_hours is not None else "never",
        )
        for each in lines
    ]


def _dollars(each: Earned) -> str:
    if each.source != "author":
        return "0"
    return f"{each.cost_usd:.2f}" if each.cost_usd is not None else "not told"
