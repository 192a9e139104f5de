"""One rank of a very large job, without what only its own timeline would show: 10,000 ranks have to fit into memory together."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from trainflash.trace.model import RankTrace

FULL_RANKS = 64  # ranks from this number on are slim: nobody reads the timeline of more
Record = TypeVar("Record")


def slim(rank: RankTrace) -> RankTrace:
    """`rank` with what ranks are compared by: steps, phases, collectives, backwards of each step, samples of its lines.

    Arrays take the narrowest type that holds them, and phases that do not occur share one array of zeros.
    """
    nothing = np.broadcast_to(np.zeros(1, np.int8), (rank.steps,))
    return replace(
        rank,
        phase_ns={name: narrow(column) if column.any() else nothing for name, column in rank.phase_ns.items()},
        occurrences={name: narrowed(spans) for name, spans in rank.occurrences.items() if name == "Bwd"},
        samples=narrowed(replace(rank.samples, stack=None, stacks=())),
        calls=(),
        collectives=None if rank.collectives is None else narrowed(rank.collectives),
        loaders=(),
        evaluations=(),
        saves=(),
        device_timeline=None,
    )


def narrowed(record: Record) -> Record:
    """A dataclass of arrays with each integer array narrow."""
    arrays = {each.name: getattr(record, each.name) for each in fields(record)}  # type: ignore[arg-type]
    return replace(record, **{name: narrow(array) for name, array in arrays.items() if isinstance(array, np.ndarray)})  # type: ignore[type-var]


def narrow(values: np.ndarray) -> np.ndarray:
    """The same integers in a copy of the narrowest signed type; other arrays as they are."""
    if values.dtype.kind != "i":
        return values.copy()
    least, most = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    kind = next(kind for kind in (np.int8, np.int16, np.int32, np.int64) if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
    return values.astype(kind)
