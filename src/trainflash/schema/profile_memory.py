"""What the allocator's events of a profile say: part of `profiles.ProfileSummary`. Bytes; `None`: not recorded, never 0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MemoryOp:
    """All that one operator (or one line, where the trace has stacks) allocated before the peak."""

    name: str
    count: int
    allocated_bytes: int  # added up, whether freed again or not


@dataclass(frozen=True)
class MemoryUse:
    """Memory of one device of one rank, over the whole trace."""

    rank: int | None
    device: str  # "cpu", "device 0"
    events: int
    peak_bytes: int  # allocated; without totals in the trace: above what was allocated as it began
    peak_at_us: float  # on the trace's clock
    peak_op: str | None  # the operator that allocated the last piece of it
    start_bytes: int | None  # allocated before the first event; None: not recorded
    growth_bytes: int  # allocated behind the last event, less what was before the first
    reserved_peak_bytes: int | None
    fragmentation: float | None  # of what was reserved at its peak, the part that was not allocated
    ops: tuple[MemoryOp, ...] = ()  # at most ten, largest first
