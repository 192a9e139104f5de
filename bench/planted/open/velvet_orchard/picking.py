"""Draws by weight."""

import os
import random
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate

FIXED = os.environ.get("PLANTED_FIX") == "1"


def picker(values: Sequence[int], weights: Sequence[float], rng: random.Random) -> Callable[[], int]:
    """A function that draws one value, each with a chance by its weight."""
    if len(values) != len(weights):
        raise ValueError(f"{len(values)} values, but {len(weights)} weights")
    totals = list(accumulate(weights))
    if totals[-1] <= 0:
        raise ValueError("the weights add up to nothing")

    def pick() -> int:
        if FIXED:
            return rng.choices(values, cum_weights=totals)[0]
        else:
            return rng.choices(values, weights)[0]

    return pick


def distinct(pick: Callable[[], int], count: int, besides: Collection[int]) -> list[int]:
    """So many different values, none of those named."""
    found: dict[int, None] = {}
    while len(found) < count:
        value = pick()
        if value not in besides:
            found[value] = None
    return list(found)
