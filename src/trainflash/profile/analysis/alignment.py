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
from trainflash.profile.analysis.matching import Matched, match
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.timeline import Timeline
from trainflash.schema.profile_times import Alignment, Straggler

MOST_NAMED = 10


@dataclass(frozen=True)
class Waiting:
    """Per rank: waiting within each device event in nanoseconds, -1 where unknown."""

    of: dict[int, np.ndarray]
    last: dict[int, int]  # collectives in which a rank came last
    caused: dict[int, int]  # waiting of the others in those
    behind: dict[int, int | None]  # mean lateness in those behind the rank before it
    alignment: Alignment

    def within(self, rank: int, timeline: Timeline) -> np.ndarray:
        """`of` a rank as far as it lies in the window; `timeline` is of the whole rank."""
        waits, device = self.of[rank], timeline.device
        parted = timeline.clip(device.start + np.maximum(waits, 0)) - timeline.clip(device.start)
        return np.where(waits >= 0, parted, -1)


def waiting(members: Sequence[tuple[int, Collectives, Timeline]], world_size: int | None, limits: Thresholds = DEFAULT) -> Waiting | None:
    """Waiting of all ranks in their collectives; None where fewer than two ranks, or nothing that they share, was traced.

    All are matched; sums are of those that lie in the windows of all of their ranks, and of their parts inside.
    """
    if len(members) < 2:
        return None
    matched, unmatched = match([(rank, mine) for rank, mine, _ in members])
    if not len(matched):
        return None
    there = matched.at >= 0
    start, clock, spread = _laid_over(matched, there, limits)
    duration = np.where(there, matched.end - matched.start, np.iinfo(np.int64).max)
    waits = np.where(there, duration - duration.min(axis=1)[:, None], 0)
    of = {}
    for column, (rank, mine, _) in enumerate(members):
        of[rank] = np.full(len(mine.rank.device), -1, np.int64)
        of[rank][matched.at[there[:, column], column]] = waits[there[:, column], column]
    seen, waited, whole = _in_windows(matched, there, waits, [timeline for _, _, timeline in members])
    arrival = np.where(there, start if clock != "unknown" else -duration, np.iinfo(np.int64).min)[seen]
    late = np.sort(arrival, axis=1)
    lead = late[:, -1] - late[:, -2]
    last = np.where(lead > 0, arrival.argmax(axis=1), -1)  # -1: together
    last_of, caused, behind = {}, {}, {}
    for column, rank in enumerate(matched.ranks):
        where = last == column
        last_of[rank] = int(where.sum())
        caused[rank] = int(waited[where].sum())
        behind[rank] = int(lead[where].mean()) if where.any() else None
    first = np.where(there, start, np.iinfo(np.int64).max).min(axis=1)[seen]
    alignment = Alignment(
        ranks=matched.ranks,
        missing_ranks=None if world_size is None else max(world_size - len(members), 0),
        collectives=len(seen),
        unmatched=unmatched,
        clock=clock,
        end_spread_us=us(spread),
        waiting_us=us(int(waited.sum())),
        transfer_us=us(int((whole - waited).sum())),
        first_arrival_spread_us=None if clock == "unknown" or not len(seen) else us(int((late[:, -1] - first).max())),
        stragglers=_stragglers(matched, seen, last, waited, limits),
    )
    return Waiting(of, last_of, caused, behind, alignment)


def _in_windows(matched: Matched, there: np.ndarray, waits: np.ndarray, timelines: Sequence[Timeline]):
    """(numbers of the collectives that lie in the windows; their waiting, and their whole duration, in there: [collective, rank])."""
    inside, waited, whole = (np.zeros_like(each) for each in (there, waits, waits))
    for column, timeline in enumerate(timelines):
        start, end = matched.start[:, column], matched.end[:, column]
        inside[:, column] = ~there[:, column] | timeline.meets(start, end)
        begun = timeline.clip(start)
        waited[:, column] = np.where(there[:, column], timeline.clip(start + waits[:, column]) - begun, 0)
        whole[:, column] = np.where(there[:, column], timeline.clip(end) - begun, 0)
    seen = np.flatnonzero(inside.all(axis=1))
    return seen, waited[seen], whole[seen]


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


def _stragglers(matched: Matched, seen: np.ndarray, last: np.ndarray, waits: np.ndarray, limits: Thresholds) -> tuple[Straggler, ...]:
    total = int(waits.sum())
    found = []
    for column, rank in enumerate(matched.ranks):
        mine = np.flatnonzero(last == column)
        caused = int(waits[mine].sum())
        if len(mine) and share(caused, total) >= limits.listed:
            named = tuple(f"{matched.kind[place]} {place + 1}" for place in seen[mine[:MOST_NAMED]].tolist())
            found.append(Straggler(rank, len(mine), len(seen), us(caused), share(caused, total), named))
    return tuple(sorted(found, key=lambda each: (-each.caused_waiting_us, each.rank)))
