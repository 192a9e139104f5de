"""Batches that each step draws anew from the whole data set, as `next(iter(loader))` does: no pass over the data can be compared.

Which samples come is then chance, on one side or on both. What is not chance: that they are samples of the same data set, each the same
under its key; that no part of it is drawn more often, or left out; that as many different ones come; and that neighbours in a batch are
no neighbours in the data set.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from trainflash.fidelity.outcome import Outcome
from trainflash.fidelity.pairing import Pair, epoch_starts
from trainflash.fidelity.record import Stream

_ANEW = 0.9  # passes for each update, from which on a pass is no pass
_LEAST_KNOWN = 20  # own: samples that both sides must have shown under one key
_NUMBERS = 10**12  # larger keys are digests
# Own: false alarms of one in 100,000 draws. Of the Kolmogorov-Smirnov statistic times the root of nm / (n + m), and in standard deviations.
_KOLMOGOROV, _DEVIATIONS = 2.47, 4.4
_MODULI = (2, 3, 5, 7)  # a data set thinned out at regular places
_SOON = (1, 2, 3)  # steps later
_PASSES = 4.0  # times the root of the data set's size: by chance a sample comes again that late once in 3,000 times
_NEIGHBOURS = 0.8  # of the mean distance of neighbouring keys: of 100 draws it scatters by a tenth


def drawn(pair: Pair) -> Outcome | None:
    """Whether the candidate draws from the data set as the baseline does; None where the baseline has passes, or keys cannot tell."""
    if pair.rebatched or pair.keys is None or not _draws_anew(pair.baseline, pair.length):
        return None
    batches = [_batches(stream, pair.length) for stream in (pair.baseline, pair.candidate)]
    old, new = ([key for batch in side for key in batch] for side in batches)
    if len(old) != len(new) or max((*old, *new)) >= _NUMBERS:
        return None
    known = [_values(stream, pair.length) for stream in (pair.baseline, pair.candidate)]
    if None in known:
        return None
    before, after = known
    assert before is not None and after is not None
    shared = before.keys() & after.keys()
    if len(shared) < _LEAST_KNOWN:
        return None
    if other := sum(before[key] != after[key] for key in shared):
        return Outcome(False, f"{other} of {len(shared)} samples that both sides draw have other values or targets")
    if reason := _drawn_otherwise(*batches):
        return Outcome(False, reason)
    counts = f"{len(set(old))} → {len(set(new))} different ones"
    return Outcome(True, f"each step of the baseline draws its samples anew, and the candidate draws of the same data set: {counts}")


def _draws_anew(stream: Stream, length: int) -> bool:
    """Whether the loader begins anew for about each update, after the first samples of what it could give."""
    starts = epoch_starts(stream, length)
    first = {key for update in stream.updates[: starts[1]] for key in update.keys or ()} if len(starts) > 1 else set()
    every = {key for update in stream.updates[:length] for key in update.keys or ()}
    return len(starts) >= _ANEW * length and len(every) > len(first)


def _batches(stream: Stream, length: int) -> list[list[int]]:
    return [[int(key, 16) for key in update.keys] for update in stream.updates[:length] if update.keys]


def _values(stream: Stream, length: int) -> dict[str, tuple[str, str | None]] | None:
    """Content and target of each sample by its key; None where one key gives several, as augmentation does, or they are not listed."""
    found: dict[str, tuple[str, str | None]] = {}
    for update in stream.updates[:length]:
        keys, rows, targets = update.keys, update.rows, update.target_rows
        if keys is None or rows is None or len(keys) != len(rows):
            return None
        beside: Sequence[str | None] = targets if targets is not None and len(targets) == len(rows) else [None] * len(rows)
        for key, value in zip(keys, zip(rows, beside, strict=True), strict=True):
            if found.setdefault(key, value) != value:
                return None
    return found


def _drawn_otherwise(old: Sequence[Sequence[int]], new: Sequence[Sequence[int]]) -> str:
    """In what the candidate's batches differ from the baseline's by more than chance; empty where they do not."""
    before, after = ([key for batch in batches for key in batch] for batches in (old, new))
    if _furthest(before, after) * math.sqrt(len(before) * len(after) / (len(before) + len(after))) > _KOLMOGOROV:
        return "the candidate draws other parts of the data set"
    for modulus in _MODULI:
        for rest in range(modulus):
            ours, theirs = (sum(key % modulus == rest for key in keys) for keys in (before, after))
            if abs(ours - theirs) > _DEVIATIONS * math.sqrt(ours + theirs):
                return f"of {len(before)} samples at every {modulus}th place of the data set {ours} → {theirs}"
    if reason := _again(old, new):
        return reason
    size = 1 + max(before)  # about: the last of them may not have come
    first = _first_repeat(after)
    if first is not None and first >= _PASSES * math.sqrt(size):  # it goes through the data set in passes
        if first < size - max(map(len, new)):
            return f"the first sample comes again after {first} of {size}"
    elif (few := len(set(after))) < (least := _least_distinct(size, len(after))):
        return f"distinct samples {len(set(before))} → {few}, of as many draws at least {least:.0f}"
    steps = [math.fsum(abs(b - a) for a, b in pairwise(keys)) for keys in (before, after)]
    return "the candidate's samples come in the order of the data set" if steps[1] < _NEIGHBOURS * steps[0] else ""


def _again(old: Sequence[Sequence[int]], new: Sequence[Sequence[int]]) -> str:
    """Whether samples come again at once, or whole batches do, more often than in the baseline."""
    twice = [sum(len(batch) - len(set(batch)) for batch in batches) for batches in (old, new)]
    if twice[1] > twice[0] + _DEVIATIONS * math.sqrt(twice[0]):
        return f"samples twice in one batch {twice[0]} → {twice[1]}"
    soon = [
        sum(len(set(batch) & set(later)) for lag in _SOON for batch, later in zip(batches, batches[lag:], strict=False))
        for batches in (old, new)
    ]
    if soon[1] > soon[0] + _DEVIATIONS * math.sqrt(2 * soon[0] + 1):
        return f"samples that come again within {_SOON[-1]} steps {soon[0]} → {soon[1]}"
    whole = [len(batches) - len({frozenset(batch) for batch in batches}) for batches in (old, new)]
    return f"batches of the same samples {whole[0]} → {whole[1]}" if whole[1] > whole[0] and min(map(len, new)) > 1 else ""


def _first_repeat(keys: Sequence[int]) -> int | None:
    """How many samples come before one of them comes again; None where none does."""
    seen: set[int] = set()
    for number, key in enumerate(keys):
        if key in seen:
            return number
        seen.add(key)
    return None


def _least_distinct(size: int, draws: int) -> float:
    """Different ones that so many draws of `size` samples give at least: the mean of the occupancy problem less its deviations."""
    missed = math.exp(-draws / size)
    return size * (1 - missed) - _DEVIATIONS * math.sqrt(max(1.0, size * missed * (1 - (1 + draws / size) * missed)))


def _furthest(old: Sequence[int], new: Sequence[int]) -> float:
    """The Kolmogorov-Smirnov statistic: how far the two empirical distributions are apart at most."""
    left, right = sorted(old), sorted(new)
    return max(abs(bisect_right(left, key) / len(left) - bisect_right(right, key) / len(right)) for key in {*left, *right})
