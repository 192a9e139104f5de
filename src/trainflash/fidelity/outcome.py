"""What a check of two records answers, and words that several checks share."""

from __future__ import annotations

from typing import Any, NamedTuple

from trainflash.fidelity.pairing import Pair

NONE_LEFT = "→ none"  # ends the evidence where the candidate, seen to its end, never does what the baseline does now and then


class Outcome(NamedTuple):
    """`ok` None: the signal was not measured or cannot be compared; `evidence` says why, or where the first difference is.

    `counts`: of what is counted, in the baseline and in the candidate.
    """

    ok: bool | None
    evidence: str
    counts: tuple[int, int] | None = None


def has_inputs(pair: Pair) -> bool:
    return any(update.samples for update, _ in pair.matched)


def no_inputs() -> Outcome:
    return Outcome(None, "no model inputs were seen (the loss does not come from an nn.Module)")


def modes_in_words(modes: list[tuple[Any, ...]]) -> str:
    """What the modes of root modules say, as `Update.modes` holds them but for the class."""
    return " + ".join(
        f"{'train' if training else 'eval'} ({dropouts} dropouts of {chance:g} in all, {norms} normalizations in train mode)"
        for training, dropouts, chance, norms in modes
    )


def some(names: Any) -> str:
    listed = [str(name) for name in names or ()]
    return ", ".join(listed[:4]) + (", …" if len(listed) > 4 else "") if any(listed) else "none"
