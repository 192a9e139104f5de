"""Which processes of one run train together: a program may start a second training beside or after its own."""

from __future__ import annotations

from collections.abc import Sequence

from trainflash.trace.model import RankTrace


def longest(ranks: Sequence[RankTrace]) -> tuple[tuple[RankTrace, ...], tuple[str, ...]]:
    """The ranks of the training that took longest, sorted by rank, and a sentence for each other one.

    Ranks belong together that joined groups of equal size, under different numbers.
    """
    trainings: list[dict[int, RankTrace]] = []
    for rank in sorted(ranks, key=lambda each: each.process_start_ns):
        own = next((group for group in trainings if _joins(rank, group)), None)
        if own is None:
            trainings.append(own := {})
        own[rank.rank] = rank
    groups = [list(group.values()) for group in trainings]
    chosen = max(groups, key=_length_ns)
    others = [f"another training in the same run is left out: {_named(group)}" for group in groups if group is not chosen]
    return tuple(sorted(chosen, key=lambda rank: rank.rank)), tuple(others)


def _joins(rank: RankTrace, group: dict[int, RankTrace]) -> bool:
    return rank.rank not in group and rank.world_size == next(iter(group.values())).world_size


def _length_ns(group: list[RankTrace]) -> int:
    return max(rank.end_ns - int(rank.step_start_ns[0]) for rank in group)


def _named(group: list[RankTrace]) -> str:
    first = group[0]
    return f"{' '.join(first.argv) or f'process {first.pid}'}, {first.steps} steps, {_length_ns(group) / 1e9:.1f} s"
