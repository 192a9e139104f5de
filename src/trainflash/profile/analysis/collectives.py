"""Collectives of one rank: which one, of which group, how many bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.view import Rank, Work
from trainflash.profile.events import Kind

MOST_ANCESTORS = 4  # host ranges around a launch that may name the collective
_SIZES = {
    "double": 8, "float64": 8, "long": 8, "int64": 8, "long int": 8, "float": 4, "float32": 4, "int": 4, "int32": 4,
    "half": 2, "float16": 2, "bfloat16": 2, "c10::half": 2, "c10::bfloat16": 2, "short": 2, "int16": 2,
    "char": 1, "int8": 1, "byte": 1, "uint8": 1, "unsigned char": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
_TOTAL_IS_OUTPUT = {"all_gather", "broadcast"}


@dataclass(frozen=True)
class Collectives:
    """Communication of one rank in the order of its launches. `at` indexes `rank.device`; `bytes` and `group_size` are -1 where unknown."""

    rank: Rank
    at: np.ndarray
    kind: tuple[str, ...]
    group: tuple[str, ...]
    sequence: np.ndarray  # number within its group, -1 unknown
    bytes: np.ndarray  # of the whole message, as nccl-tests count them
    group_size: np.ndarray

    def __len__(self) -> int:
        return len(self.at)

    @property
    def start(self) -> np.ndarray:
        return self.rank.device.start[self.at]

    @property
    def end(self) -> np.ndarray:
        return self.rank.device.end[self.at]


def collectives_of(rank: Rank) -> Collectives:
    """Every communication kernel of a rank."""
    device = rank.device
    at = np.flatnonzero(device.work == Work.COMMUNICATION)
    launched = (device.launch[at] >= 0).all() if len(at) else False
    at = at[np.lexsort((at, device.launch_ns[at]))] if launched else at  # ranks launch in one order, whatever their streams do
    rows = device.row[at]
    calls = _calls(rank, at)
    strings = rank.trace.strings
    said, names = rank.trace.column("collective").take(rows, -1), rank.trace.events.name[rows]
    known: dict[tuple, str] = {}
    kinds = []
    for place in range(len(at)):
        key = (int(said[place]), tuple(calls[place]), int(names[place]))
        if key not in known:
            told = [strings[key[0]] if key[0] >= 0 else None, *(rank.name(row) for row in key[1]), strings[key[2]]]
            known[key] = words.collective(*told) or "other"
        kinds.append(known[key])
    group = _texts(rank, rows, ("group_ranks", "group_name"))
    dims = rank.trace.column("input_dims"), rank.trace.column("input_types")
    sizes = [_bytes(rank, kinds[place], int(rows[place]), calls[place], dims) for place in range(len(at))]
    return Collectives(
        rank=rank,
        at=at,
        kind=tuple(kinds),
        group=tuple(group),
        sequence=rank.trace.column("collective_sequence").take(rows, -1),
        bytes=np.asarray(sizes, np.int64),
        group_size=rank.trace.column("group_size").take(rows, -1),
    )


def bus_factor(kind: str, ranks: int | None) -> float | None:
    """Bus bandwidth ÷ algorithm bandwidth of a collective over so many ranks, as nccl-tests define it (doc/PERFORMANCE.md)."""
    if not ranks or ranks < 2:
        return None
    if kind == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if kind in {"all_gather", "reduce_scatter", "all_to_all"}:
        return (ranks - 1) / ranks
    return 1.0


def _calls(rank: Rank, at: np.ndarray) -> list[list[int]]:
    """For each collective the rows of the host ranges around its launch that a communication library or a process group made."""
    rows = rank.rows(Kind.ANNOTATION, Kind.HOST_OP)
    rows = rows[rank.named(rows, words.is_collective_call)]
    tree = rank.nest(rows)
    inner = tree.innermost(rank.device.launch_track[at], rank.device.launch_ns[at])
    found = []
    for one in inner.tolist():
        mine = []
        while one >= 0 and len(mine) < MOST_ANCESTORS:
            mine.append(int(rows[one]))
            one = int(tree.parent[one])
        found.append(mine)
    return found


def _texts(rank: Rank, rows: np.ndarray, columns: tuple[str, ...]) -> list[str]:
    found = [""] * len(rows)
    for name in columns:
        codes = rank.trace.column(name).take(rows, -1)
        for place, code in enumerate(codes.tolist()):
            if code >= 0 and not found[place]:
                found[place] = rank.trace.strings[code]
    return found


def _bytes(rank: Rank, kind: str, row: int, calls: list[int], dims) -> int:
    for place in (row, *calls):
        here = np.asarray([place])
        inside, outside = (int(rank.trace.column(f"{end}_elements").take(here, -1)[0]) for end in ("in", "out"))
        dtype = int(rank.trace.column("dtype").take(here, -1)[0])
        size = _SIZES.get(rank.trace.strings[dtype].lower()) if dtype >= 0 else None
        elements = outside if kind in _TOTAL_IS_OUTPUT else inside
        if size and elements >= 0:
            return elements * size
        shape, types = (int(column.take(here, -1)[0]) for column in dims)
        if shape >= 0 and types >= 0 and kind not in _TOTAL_IS_OUTPUT:
            total = _tensor_bytes(rank.trace.strings[shape], rank.trace.strings[types])
            if total:
                return total
    return -1


def _tensor_bytes(shapes: str, types: str) -> int | None:
    """Bytes of the tensors that a call was given; None where a shape or type cannot be read."""
    try:
        total = 0
        for shape, kind in zip(json.loads(shapes), json.loads(types), strict=True):
            size = _SIZES.get(str(kind).lower())
            if size is None or not shape:
                continue
            elements = 1
            for extent in shape:
                elements *= int(extent)
            total += elements * size
        return total or None
    except (ValueError, TypeError):
        return None
