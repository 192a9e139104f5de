"""What the questions ask of a trace: the only side columns that need be read for a summary."""

from __future__ import annotations

ANALYSED = frozenset(
    {
        "bytes", "call_stack", "collective", "collective_sequence", "correlation", "device", "dtype", "ev_index", "external_id", "flops",
        "forward_thread", "graph_node_id", "group_name", "group_ranks", "group_size", "hlo_category", "in_elements", "input_dims",
        "input_types", "memory_kind_dst", "memory_kind_src", "out_elements", "scope", "sequence", "source", "step", "stream",
    }
)  # fmt: skip
