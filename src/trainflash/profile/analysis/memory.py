"""How much memory was allocated and reserved, when it was most, and which operators allocated it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.figures import ratio, us
from trainflash.profile.analysis.view import Rank
from trainflash.profile.events import Memory
from trainflash.schema.profile_memory import MemoryOp, MemoryUse

MOST_OPS = 10
CPU = 0  # torch's DeviceType


def memory(ranks: Sequence[tuple[int, Rank]]) -> tuple[MemoryUse, ...]:
    """One answer for each device of each rank that has allocator events."""
    found = []
    for number, rank in ranks:
        table = rank.trace.memory
        if not len(table.t_ns):
            continue
        ops = _ops(rank)
        for kind, device in sorted(set(zip(table.device_type.tolist(), table.device.tolist(), strict=True))):
            mine = np.flatnonzero((table.device_type == kind) & (table.device == device))
            found.append(_use(number if len(ranks) > 1 else None, kind, device, table, mine, ops[mine], rank.trace.strings))
    return tuple(found)


def _ops(rank: Rank) -> np.ndarray:
    """For each event the code of what allocated: as it says itself, else the operator that asked for it; -1 unknown."""
    table = rank.trace.memory
    if table.op is not None:
        return table.op
    rows, tree = rank.host_ops
    inner = tree.innermost(table.track, table.t_ns)
    asking = np.flatnonzero(inner >= 0)
    while len(asking):  # one that only allocates does so for the operator around it
        asking = asking[(tree.parent[inner[asking]] >= 0) & rank.named(rows[inner[asking]], words.is_allocating)]
        inner[asking] = tree.parent[inner[asking]]
    return np.where(inner >= 0, rank.trace.events.name[rows[np.maximum(inner, 0)]] if len(rows) else -1, -1)


def _use(number, kind: int, device: int, table: Memory, mine: np.ndarray, ops: np.ndarray, strings: Sequence[str]) -> MemoryUse:
    change = table.bytes[mine]
    told = table.allocated[mine]
    known = bool((told > 0).any())  # some tracers write 0 for what they do not count
    allocated = told if known else np.cumsum(change)
    start = int(told[0] - change[0]) if known else None
    reserved = table.reserved[mine]
    peak = int(allocated.argmax())
    widest = int(reserved.argmax())
    before = np.flatnonzero((np.arange(len(mine)) <= peak) & (change > 0) & (ops >= 0))
    codes, which = np.unique(ops[before], return_inverse=True)
    sums, counts = np.zeros(len(codes), np.int64), np.bincount(which, minlength=len(codes))
    np.add.at(sums, which, change[before])
    order = np.lexsort((codes, -sums))[:MOST_OPS]
    return MemoryUse(
        rank=number,
        device="cpu" if kind == CPU else f"device {device}",
        events=len(mine),
        peak_bytes=max(int(allocated[peak]), 0),
        peak_at_us=us(table.t_ns[mine[peak]]),
        peak_op=strings[int(ops[peak])] if ops[peak] >= 0 else None,
        start_bytes=start,
        growth_bytes=int(allocated[-1]) - (start or 0),
        reserved_peak_bytes=int(reserved[widest]) if reserved[widest] > 0 else None,
        fragmentation=ratio(reserved[widest] - allocated[widest], reserved[widest]) if known and reserved[widest] > 0 else None,
        ops=tuple(MemoryOp(strings[int(codes[at])], int(counts[at]), int(sums[at])) for at in order),
    )
