"""Ranks side by side: in a collective all leave together, so who stays longer came earlier. Waiting is not transfer.

The k-th collective of a group is one event on all its ranks. It transfers for as long as the rank that stays shortest, which came last;
what the others stay longer they wait. Durations alone tell that; clocks are only needed to say who came last, and collectives end
together, so that clocks which differ can be laid over one another by those ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainflash.profile.analysis.collectives import Collectives
from trainflash.profile.analysis.figures import share, us
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.schema.profile_times import Alignment, Straggler

POINT_TO_POINT = {"send", "receive"}  # of one rank with another: no event of the whole group
MOST_NAMED = 10


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


@dataclass(frozen=True)
class Waiting:
    """Per rank: waiting within each device event in nanoseconds, -1 where unknown."""

    of: dict[int, np.ndarray]
    last: dict[int, int]  # collectives in which a rank came last
    caused: dict[int, int]  # waiting of the others in those
    behind: dict[int, int | None]  # mean lateness in those behind the rank before it
    alignment: Alignment


def waiting(members: Sequence[tuple[int, Collectives]], world_size: int | None, limits: Thresholds = DEFAULT) -> Waiting | None:
    """Waiting of all ranks in their collectives; None where fewer than two ranks, or nothing that they share, was traced."""
    if len(members) < 2:
        return None
    matched, unmatched = match(members)
    if not len(matched):
        return None
    there = matched.at >= 0
    start, clock, spread = _laid_over(matched, there, limits)
    duration = np.where(there, matched.end - matched.start, np.iinfo(np.int64).max)
    transfer = duration.min(axis=1)
    waits = np.where(there, duration - transfer[:, None], 0)
    arrival = np.where(there, start if clock != "unknown" else -duration, np.iinfo(np.int64).min)
    late = np.sort(arrival, axis=1)
    lead = late[:, -1] - late[:, -2]
    last = np.where(lead > 0, arrival.argmax(axis=1), -1)  # -1: together
    of, last_of, caused, behind = {}, {}, {}, {}
    for column, (rank, mine) in enumerate(members):
        each = np.full(len(mine.rank.device), -1, np.int64)
        known = there[:, column]
        each[matched.at[known, column]] = waits[known, column]
        of[rank] = each
        where = last == column
        last_of[rank] = int(where.sum())
        caused[rank] = int(waits[where].sum())
        behind[rank] = int(lead[where].mean()) if where.any() else None
    total = int(waits.sum())
    first = np.where(there, start, np.iinfo(np.int64).max).min(axis=1)
    alignment = Alignment(
        ranks=matched.ranks,
        missing_ranks=None if world_size is None else max(world_size - len(members), 0),
        collectives=len(matched),
        unmatched=unmatched,
        clock=clock,
        end_spread_us=us(spread),
        waiting_us=us(total),
        transfer_us=us(int((transfer * there.sum(axis=1)).sum())),
        first_arrival_spread_us=None if clock == "unknown" else us(int((late[:, -1] - first).max())),
        stragglers=_stragglers(matched, last, waits, limits),
    )
    return Waiting(of, last_of, caused, behind, alignment)


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


def _in_step(members: Sequence[tuple[Collectives, np.ndarray]]) -> list[np.ndarray]:
    """The same collectives of every member, in order: by their numbers where all have them, else by order, shifted where one saw more."""
    numbers = [mine.sequence[places] for mine, places in members]
    if all((each >= 0).all() and len(np.unique(each)) == len(each) for each in numbers):
        both = numbers[0]
        for each in numbers[1:]:
            both = np.intersect1d(both, each)
        return [_numbered(places, each, both) for (_, places), each in zip(members, numbers, strict=True)]
    shortest = min(range(len(members)), key=lambda column: len(members[column][1]))
    pattern, places = members[shortest]
    wanted = [pattern.kind[place] for place in places]
    chosen = []
    for mine, here in members:
        best, distance = None, None
        for shift in range(len(here) - len(places) + 1):
            part = here[shift : shift + len(places)]
            if [mine.kind[place] for place in part] == wanted:
                apart = float(np.abs(mine.end[part] - pattern.end[places]).sum())
                if distance is None or apart < distance:
                    best, distance = part, apart
        if best is None:
            return [np.empty(0, np.int64)] * len(members)
        chosen.append(best)
    return chosen


def _numbered(places: np.ndarray, numbers: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    order = np.argsort(numbers)
    return places[order[np.searchsorted(numbers, wanted, sorter=order)]]


def _laid_over(matched: Matched, there: np.ndarray, limits: Thresholds) -> tuple[np.ndarray, str, float]:
    """(starts on one clock, how good that clock is, how far ends still lie apart in ns)."""
    ends = np.where(there, (matched.end - matched.end.max()).astype(float), np.nan)  # near 0 a float keeps its nanoseconds
    middle = np.nanmedian(ends, axis=1, keepdims=True)
    offset = np.zeros(len(matched.ranks))
    sharing = there.any(axis=0)
    offset[sharing] = np.nanmedian((ends - middle)[:, sharing], axis=0)
    shifted = bool(np.abs(offset).max() > limits.shifted_ns)
    if not shifted:
        offset = np.zeros_like(offset)
    apart = ends - offset
    spread = float(np.median(np.nanmax(apart, axis=1) - np.nanmin(apart, axis=1)))
    clock = "unknown" if spread > limits.untraced_ns else "shifted" if shifted else "aligned"
    return matched.start - offset.astype(np.int64), clock, spread


def _stragglers(matched: Matched, last: np.ndarray, waits: np.ndarray, limits: Thresholds) -> tuple[Straggler, ...]:
    total = int(waits.sum())
    found = []
    for column, rank in enumerate(matched.ranks):
        mine = np.flatnonzero(last == column)
        caused = int(waits[mine].sum())
        if len(mine) and share(caused, total) >= limits.listed:
            named = tuple(f"{matched.kind[place]} {place + 1}" for place in mine[:MOST_NAMED].tolist())
            found.append(Straggler(rank, len(mine), len(matched), us(caused), share(caused, total), named))
    return tuple(sorted(found, key=lambda each: (-each.caused_waiting_us, each.rank)))
