"""Which collectives of several ranks are one and the same: by their numbers, else by order, and where one rank lacks some, by their ends.

All ranks leave a collective together. Clocks may differ by a constant, so that the ends of two ranks are laid over one another at each
offset that is possible; the offset that lets the most of them coincide, and those best, is the clock's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainflash.profile.analysis.collectives import Collectives
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds

POINT_TO_POINT = {"send", "receive"}  # of one rank with another: no event of the whole group
MOST_LOST = 64  # collectives in a row, by which the order of two ranks may differ
LOOKED_AT = 1 << 16  # pairs of collectives, about, by which offsets are found
LEAST_LOOKED_AT = 32  # collectives
MOST_TRIED = 8  # offsets at which all collectives are paired
FAR = 10  # times the usual distance of two ends: no longer one collective
LEAST_CLOSE = 0.5  # of a group's collectives: where fewer end together, ends tell nothing


@dataclass(frozen=True)
class Matched:
    """Collectives that all ranks of a group have: arrays [collective, rank]."""

    ranks: tuple[int, ...]
    kind: tuple[str, ...]
    at: np.ndarray  # index into each rank's device work, -1 where the rank is not of the group
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.kind)


def match(members: Sequence[tuple[int, Collectives]]) -> tuple[Matched, int]:
    """Collectives that stand on every rank of their group, in order; and how many events found no partner."""
    groups = sorted({group for _, mine in members for group in mine.group})
    rows: list[tuple[int, str, list[int]]] = []
    lonely = 0
    for group in groups:
        places = [
            np.asarray([at for at in range(len(mine)) if mine.group[at] == group and mine.kind[at] not in POINT_TO_POINT], np.int64)
            for _, mine in members
        ]
        inside = [column for column, mine in enumerate(places) if len(mine)]
        total = sum(len(mine) for mine in places)
        if len(inside) < 2:
            lonely += total
            continue
        chosen = _in_step([(members[column][1], places[column]) for column in inside])
        lonely += total - sum(len(mine) for mine in chosen)
        for number in range(len(chosen[0])):
            line = [-1] * len(members)
            for column, mine in zip(inside, chosen, strict=True):
                line[column] = int(members[column][1].at[mine[number]])
            first = members[inside[0]][1]
            rows.append((int(first.start[chosen[0][number]]), first.kind[chosen[0][number]], line))
    rows.sort(key=lambda row: (row[0], row[1], row[2]))
    at = np.asarray([line for _, _, line in rows], np.int64).reshape(len(rows), len(members))
    start, end = np.zeros_like(at), np.zeros_like(at)
    for column, (_, mine) in enumerate(members):
        known = at[:, column] >= 0
        start[known, column] = mine.rank.device.start[at[known, column]]
        end[known, column] = mine.rank.device.end[at[known, column]]
    return Matched(tuple(rank for rank, _ in members), tuple(kind for _, kind, _ in rows), at, start, end), lonely


def _in_step(members: Sequence[tuple[Collectives, np.ndarray]], limits: Thresholds = DEFAULT) -> list[np.ndarray]:
    """The same collectives of every member, in order: by their numbers where all have them, else by order and by their ends."""
    numbers = [mine.sequence[places] for mine, places in members]
    if all((each >= 0).all() and len(np.unique(each)) == len(each) for each in numbers):
        both = numbers[0]
        for each in numbers[1:]:
            both = np.intersect1d(both, each)
        return [_numbered(places, each, both) for (_, places), each in zip(members, numbers, strict=True)]
    longest = max(range(len(members)), key=lambda column: len(members[column][1]))  # the one that lacks the fewest
    pattern = _Line.of(*members[longest])
    partner = np.stack([_partners(pattern, _Line.of(*member), limits) for member in members])
    shared = (partner >= 0).all(axis=0)
    return [places[partner[column][shared]] for column, (_, places) in enumerate(members)]


def _numbered(places: np.ndarray, numbers: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    order = np.argsort(numbers)
    return places[order[np.searchsorted(numbers, wanted, sorter=order)]]


@dataclass(frozen=True)
class _Line:
    """The collectives of one group on one rank, in order."""

    kind: tuple[str, ...]
    end: np.ndarray
    duration: np.ndarray

    @classmethod
    def of(cls, mine: Collectives, places: np.ndarray) -> _Line:
        return cls(tuple(mine.kind[place] for place in places), mine.end[places], mine.end[places] - mine.start[places])

    def __len__(self) -> int:
        return len(self.kind)


def _partners(pattern: _Line, other: _Line, limits: Thresholds) -> np.ndarray:
    """For each collective of `pattern` the one of `other`, -1 where it has none."""
    in_order = np.arange(len(pattern))
    same = pattern.kind == other.kind
    if same and (_distance(other.end - pattern.end) <= limits.shifted_ns).all():
        return in_order
    best = min((_paired(pattern, other, offset, limits) for offset in _offsets(pattern, other, limits)), key=lambda pairs: pairs.order)
    return in_order if same and best.close < LEAST_CLOSE * len(pattern) else best.partner


@dataclass(frozen=True)
class _Pairs:
    partner: np.ndarray
    close: int  # whose ends lie together
    spread: float
    misfit: int
    offset: int

    @property
    def order(self) -> tuple:
        """Best first: the most pairs, the closest ends, the most alike durations, the least offset."""
        return (-self.close, self.spread, self.misfit, abs(self.offset))


def _distance(apart: np.ndarray) -> np.ndarray:
    return np.abs(apart - np.median(apart)) if len(apart) else apart


def _offsets(pattern: _Line, other: _Line, limits: Thresholds) -> list[int]:
    """Likely differences of the two clocks: those at which the most collectives of nearly the same place in the order end together."""
    near = np.arange(-MOST_LOST, len(pattern) - len(other) + MOST_LOST + 1)
    looked_at = min(max(LOOKED_AT // len(near), LEAST_LOOKED_AT), len(other))
    looked = np.unique(np.linspace(0, len(other) - 1, looked_at).astype(np.int64))
    places = looked[:, None] + near
    real = (places >= 0) & (places < len(pattern))
    apart = np.sort((other.end[looked][:, None] - pattern.end[np.clip(places, 0, len(pattern) - 1)])[real])
    last = np.searchsorted(apart, apart + limits.shifted_ns, side="right")
    votes = last - np.arange(len(apart))
    found: list[int] = []
    for first in np.argsort(-votes, kind="stable").tolist():
        offset = int(apart[(first + last[first]) // 2])
        if all(abs(offset - known) > limits.shifted_ns for known in found):
            found.append(offset)
        if len(found) == MOST_TRIED or votes[first] < 2:
            break
    return [0, *found]


def _paired(pattern: _Line, other: _Line, offset: int, limits: Thresholds) -> _Pairs:
    """Each collective with the one that ends nearest once the clocks are laid over one another, where that is mutual."""
    here, there = np.argsort(pattern.end, kind="stable"), np.argsort(other.end, kind="stable")
    left, right = pattern.end[here], other.end[there] - offset
    onward, back = _nearest(left, right), _nearest(right, left)
    mutual = np.flatnonzero(back[onward] == np.arange(len(left)))
    mine, theirs = here[mutual], there[onward[mutual]]
    alike = np.asarray([pattern.kind[one] == other.kind[two] for one, two in zip(mine.tolist(), theirs.tolist(), strict=True)], bool)
    mine, theirs = mine[alike], theirs[alike]
    apart = other.end[theirs] - pattern.end[mine]
    distance = _distance(apart)
    close = distance <= limits.shifted_ns
    kept = close | (distance <= FAR * float(np.median(distance[close]))) if close.any() else close
    partner = np.full(len(pattern), -1, np.int64)
    partner[mine[kept]] = theirs[kept]
    spread = float(distance[close].mean()) if close.any() else np.inf
    misfit = int(np.abs(pattern.duration[mine] - other.duration[theirs])[close].sum())
    return _Pairs(partner, int(close.sum()), spread, misfit, offset)


def _nearest(wanted: np.ndarray, among: np.ndarray) -> np.ndarray:
    """For each of `wanted` the place of the nearest of `among`; both ascend, `among` is not empty."""
    after = np.clip(np.searchsorted(among, wanted), 1, max(len(among) - 1, 1))
    if len(among) == 1:
        return np.zeros(len(wanted), np.int64)
    return np.where(wanted - among[after - 1] <= among[after] - wanted, after - 1, after)
