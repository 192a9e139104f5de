"""The least time that a call of torch can take on this machine: its bytes over the bandwidth, its FLOPs over the peak of its type.

Both are lower bounds: each tensor is read or written once, at the bandwidth of the cache where all of them would fit into one, and
products run as fast as the fastest one measured. A backward reads what the forward read and made, and multiplies once for each operand
that needs a gradient. No floor is given where the work does not follow from shapes: sorting, drawing, loops inside an operator.
"""

from __future__ import annotations

from trainflash.schema import Peaks, operator_work
from trainflash.trace.calls import CallRow

CACHE_BYTES = 1 << 22  # own: what all tensors of a call together may take to fit into a second-level cache and a part of the third


def floor_s(row: CallRow, peaks: Peaks) -> float | None:
    """Seconds that one of these calls takes at least, forward and backward; None where it does not follow."""
    both = operator_work.moved(row.name, row.given, row.made)
    if both is None:
        return None
    if any(each.device != "cpu" or each.layout.startswith("sparse") for each in (*row.given, *row.made)):
        return None
    seconds = both / _bandwidth(both, peaks)
    backward = seconds if row.backward_ns > 0 else 0.0
    if backward and row.name == "embedding" and len(row.given) > 1:  # a dense gradient is as large as the table
        scattered = sum(map(operator_work.size, (*row.made, row.given[1])))
        backward = scattered / _bandwidth(scattered, peaks)
    flops = operator_work.flops(row.name, row.given, row.made)
    if flops:
        peak = peaks.flops_per_s.get(row.given[0].dtype, peaks.flops_per_s.get("float32"))
        if not peak:
            return None
        ways = sum(each.requires_grad for each in row.given[:2])
        seconds, backward = max(seconds, flops / peak), max(backward, ways * flops / peak) if row.backward_ns > 0 else 0.0
    return seconds + backward


def _bandwidth(size: int, peaks: Peaks) -> float:
    return peaks.bytes_per_s["cache" if size <= CACHE_BYTES else "memory"]
