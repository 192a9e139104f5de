"""Sums by group, and by pairs of groups, of arrays with millions of rows: one sort instead of a loop per group."""

from __future__ import annotations

import numpy as np


def summed(place: np.ndarray, amount: np.ndarray, length: int) -> np.ndarray:
    """int64 sum of `amount` for each of `length` groups; exact."""
    total = np.zeros(length, np.int64)
    np.add.at(total, place, amount)
    return total


def grouped(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct values, ascending; which of them each is). `values` are integers; where they lie close together nothing is sorted."""
    low = int(values.min(initial=0))
    size = int(values.max(initial=0)) - low + 1
    if size > max(4 * len(values), 1 << 12):
        return np.unique(values, return_inverse=True)
    there = np.zeros(size, bool)
    there[values - low] = True
    known = np.flatnonzero(there)
    number = np.zeros(size, np.int32)
    number[known] = np.arange(len(known))
    return known + low, number[values - low]


def pairs(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(left, right, which) of the distinct pairs, ascending; `which` says the pair of each row. Both hold numbers from -1 on."""
    left, right = np.asarray(left, np.int64), np.asarray(right, np.int64)
    width = int(right.max()) + 2 if len(right) else 1
    known, which = grouped((left + 1) * width + right + 1)
    return known // width - 1, known % width - 1, which


def largest(group: np.ndarray, item: np.ndarray, amount: np.ndarray, most: int) -> list[tuple[int, int, int]]:
    """(group, item, sum), for each group its `most` items with the largest sums, ties by item; groups ascending."""
    groups, items, which = pairs(group, item)
    total = summed(which, amount, len(groups))
    order = np.lexsort((items, -total, groups))
    groups = groups[order]
    rank = np.arange(len(groups)) - np.searchsorted(groups, groups, side="left")
    kept = order[rank < most]
    return list(zip(groups[rank < most].tolist(), items[kept].tolist(), total[kept].tolist(), strict=True))
