"""Targets that the program computes itself, such as a teacher's answers: other ones, or the same but for rounding?

Compared are two kinds of random signed sums of all float targets of an update: of their values, and of these compressed to the logarithm
of 1 + 100 |x| with their sign, where a change of what is small shows beside what is large. Either distance is that of the whole lists,
within about 25 %, and depends on the place of every value. Targets that are no floats, and shapes and number types of all, must be equal.
"""

from __future__ import annotations

import math
import struct
from typing import Literal

from trainflash.fidelity.record import Update

Aims = Literal["same", "rounding", "other"]

# Relative, of both kinds of sums. Measured: teachers of 1 to 20 layers computed in float64 or row by row are ≤ 3e-6 away, a chaotic one of
# 24 blocks by fused attention up to 4e-5; targets rounded to float16 are 2e-4 away, those of weights rounded to bfloat16 2e-3.
LIMIT = 1e-5
FOLLOWING = 1e-2  # the same for targets that follow the trained weights, as those of an averaged teacher do: they drift with them


def relation(old: Update, new: Update, limit: float = LIMIT) -> Aims:
    """How the targets of two updates that were given the same inputs relate; `limit`: how far rounding may take them."""
    if old.targets == new.targets:
        return "same"
    far = apart(old, new)
    return "rounding" if far is not None and far <= limit and not _moved(old, new) else "other"


def apart(old: Update, new: Update) -> float | None:
    """How far the float targets of two updates are apart, relative; None where all else is not equal, or they were not measured."""
    if old.target_sums is None or new.target_sums is None or old.target_sums[0] != new.target_sums[0]:
        return None
    ours, theirs = (_sums(update.target_sums[1]) for update in (old, new))
    if len(ours) != len(theirs):
        return None
    half = len(ours) // 2
    found = [_apart(ours[begin : begin + half], theirs[begin : begin + half]) for begin in (0, half)]
    return None if any(map(math.isnan, found)) else max(found)


def _sums(packed: str) -> tuple[float, ...]:
    return struct.unpack(f"<{len(packed) // 16}d", bytes.fromhex(packed))


def _apart(old: tuple[float, ...], new: tuple[float, ...]) -> float:
    """Of one kind of sums, the sum of squares first; NaN where values are not finite."""
    if not all(map(math.isfinite, (*old, *new))):
        return math.nan
    size = math.sqrt(old[0])
    far = max(math.dist(old[1:], new[1:]), abs(size - math.sqrt(new[0])))
    return far / size if size else (math.inf if far else 0.0)


def _moved(old: Update, new: Update) -> bool:
    """Whether the very same rows come in another order: no rounding does that."""
    return old.target_rows is not None and new.target_rows is not None and sorted(old.target_rows) == sorted(new.target_rows)
