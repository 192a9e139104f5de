"""What the ranks of one training should have in common: that all of them are there, and that they run the same code."""

from __future__ import annotations

from collections.abc import Sequence

from trainflash.trace.model import RankTrace

_SHOWN = 5


def disagreements(ranks: Sequence[RankTrace]) -> tuple[str, ...]:
    """One sentence for each thing that differs, or is missing."""
    return (*_missing(ranks), *_versions(ranks), *_sources(ranks))


def _missing(ranks: Sequence[RankTrace]) -> list[str]:
    expected = ranks[0].world_size
    absent = sorted(set(range(expected)) - {rank.rank for rank in ranks})
    if not absent or len(ranks) >= expected:
        return []
    verb = "has" if len(absent) == 1 else "have"
    return [
        f"{_numbers(absent)} of {expected} {verb} left no steps: these figures are of the others. Its machine must see the run's folder, "
        "and PYTHONPATH must reach it"
    ]


def _versions(ranks: Sequence[RankTrace]) -> list[str]:
    found = []
    for name in ("python", "torch"):
        by_version = _grouped(ranks, lambda rank, name=name: rank.versions.get(name, ""))
        if len(by_version) > 1:
            named = "; ".join(f"{version} on {_who(group)}" for version, group in by_version.items())
            found.append(f"ranks run different versions of {name}: {named}")
    return found


def _sources(ranks: Sequence[RankTrace]) -> list[str]:
    first = ranks[0]
    other: dict[str, list[RankTrace]] = {}
    for rank in ranks[1:]:
        for path in sorted(first.sources.keys() & rank.sources.keys()):
            if first.sources[path] != rank.sources[path]:
                other.setdefault(path, []).append(rank)
    if not other:
        return []
    paths = list(other)
    named = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return [f"ranks run different code: {named} on {_who(other[paths[0]])} is not that of rank {first.rank} on {first.host}"]


def _grouped(ranks: Sequence[RankTrace], key) -> dict[str, list[RankTrace]]:
    groups: dict[str, list[RankTrace]] = {}
    for rank in ranks:
        if value := key(rank):
            groups.setdefault(value, []).append(rank)
    return groups


def _who(ranks: Sequence[RankTrace]) -> str:
    hosts = ", ".join(dict.fromkeys(rank.host for rank in ranks if rank.host))
    return f"{_numbers([rank.rank for rank in ranks])}{f' ({hosts})' if hosts else ''}"


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:_SHOWN])
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {shown}{more}"
