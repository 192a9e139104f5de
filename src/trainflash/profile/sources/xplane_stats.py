"""Which stats of XPlane events become which side column, and the texts among them that hold several values."""

from __future__ import annotations

import re

# Stat → column, the first one that an event has wins. Names: `tsl/profiler/utils/xplane_schema.cc`.
COLUMN_OF_STAT = {
    "correlation_id": "correlation",
    "tf_op": "scope",
    "name": "scope",
    "name_scope": "scope",
    "hlo_op": "hlo_op",
    "hlo_module": "hlo_module",
    "hlo_category": "hlo_category",
    "long_name": "long_name",
    "source": "source",
    "model_flops": "flops",
    "flops": "flops",
    "bytes_accessed": "bytes_accessed",
    "run_id": "run_id",
    "group_id": "group_id",
    "step_num": "step",
    "device_ordinal": "device",
    "context_id": "context",
    "occupancy_pct": "occupancy_percent",
    "theoretical_occupancy_pct": "occupancy_percent",
    "cuda_graph_id": "graph_id",
    "graph_id": "graph_id",
    "cuda_graph_node_id": "graph_node_id",
    "nvtx_range": "scope",
}
DETAILS = ("memcpy_details", "kernel_details", "memset_details")
NO_SCOPES = frozenset({"", "XlaModule:"})  # what XLA writes where an op has no scope

_PART = re.compile(r"(\w+):(\S+)")
_OF_PART = {
    "kind_src": ("memory_kind_src", str),
    "kind_dst": ("memory_kind_dst", str),
    "size": ("bytes", int),
    "num_bytes": ("bytes", int),
    "grid": ("grid", "list"),
    "block": ("block", "list"),
    "regs": ("registers", int),
    "occ_pct": ("occupancy_percent", float),
}
_NOT_SAID = {"occ_pct": 0.0, "size": 0}  # written where it is not known


def details(text: str) -> dict[str, int | float | str]:
    """Column → value of "regs:32 grid:16,1,1 block:256,1,1 occ_pct:50" and "kind_src:pinned kind_dst:device size:64"."""
    found: dict[str, int | float | str] = {}
    for part, value in _PART.findall(text[:2000]):
        if part not in _OF_PART:
            continue
        column, how = _OF_PART[part]
        try:
            read = "[" + value.replace(",", ", ") + "]" if how == "list" else how(value)
        except ValueError:
            continue
        if _NOT_SAID.get(part) != read and not (isinstance(read, int) and abs(read) >= 1 << 62):
            found.setdefault(column, read)
    return found
