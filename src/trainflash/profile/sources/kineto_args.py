"""Which args of a JSON event become which side column, per family of categories.

Each family has a msgspec struct of its own, in the order in which Kineto writes them, since decoding is fastest so; args that no family
names are passed over unread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec

from trainflash.profile.events import INTEGERS, SIDE_COLUMNS, Kind

_Group = tuple[tuple[str, str], ...]
JSON_TEXT = "json"  # any JSON value, kept as its text


@dataclass(frozen=True)
class Arg:
    """`get(struct)` → its value, None if absent; goes to `column`, read as `how` (INTEGERS, REALS, TEXTS of `events`, or JSON_TEXT).

    An arg with `only_with` is looked for only where that column was found, in this list of events.
    """

    get: Any
    column: str
    how: str
    only_with: str | None


@dataclass(frozen=True)
class Family:
    """Decoder of a list of args, and what to take from each.

    `more`: families of args that are looked for only in those events that have the column named: rare ones cost nothing elsewhere.
    """

    decoder: msgspec.json.Decoder
    one: msgspec.json.Decoder
    empty: msgspec.Struct
    args: tuple[Arg, ...]
    more: Mapping[str, Family] = field(default_factory=dict)


_AS_JSON = {"grid", "block", "input_dims", "input_types", "group_ranks", "module_hierarchy"}
_ONLY_WITH = {
    "input_types": "input_dims",
    "forward_thread": "sequence",
    "block": "grid",
    "python_parent_id": "python_id",
    "python_module_id": "python_id",
}


_COLLECTIVE = (
    ("In msg nelems", "in_elements"),
    ("Out msg nelems", "out_elements"),
    ("Group size", "group_size"),
    ("dtype", "dtype"),
    ("Process Group Name", "group_name"),
    ("Process Group Description", "group_description"),
    ("Process Group Ranks", "group_ranks"),
    ("Seq", "collective_sequence"),
    ("Src Rank", "peer"),
    ("Dst Rank", "peer"),
)
_HOST = (
    ("External id", "external_id"),
    ("Input Dims", "input_dims"),
    ("Input type", "input_types"),
    ("Sequence number", "sequence"),
    ("Fwd thread id", "forward_thread"),
    ("Ev Idx", "ev_index"),
    ("Call stack", "call_stack"),
    ("Module Hierarchy", "module_hierarchy"),
    ("flops", "flops"),
    ("kernel_backend", "kernel_backend"),
    ("Collective name", "collective"),
)
_MARK = (("step_num", "step"),)
_TRITON = (("kernel_file", "kernel_file"),)
_PYTHON = (
    ("Python id", "python_id"),
    ("Python parent id", "python_parent_id"),
    ("Python module id", "python_module_id"),
    ("Ev Idx", "ev_index"),
    ("External id", "external_id"),
)
_DEVICE = (
    ("External id", "external_id"),
    ("queued", "queued"),
    ("device", "device"),
    ("context", "context"),
    ("stream", "stream"),
    ("correlation", "correlation"),
    ("external id", "external_id"),
    ("bytes", "bytes"),
    ("memory bandwidth (GB/s)", "bandwidth_gb_s"),
    ("registers per thread", "registers"),
    ("shared memory", "shared_memory"),
    ("blocks per SM", "blocks_per_sm"),
    ("warps per SM", "warps_per_sm"),
    ("grid", "grid"),
    ("block", "block"),
    ("est. achieved occupancy %", "occupancy_percent"),
    ("graph id", "graph_id"),
    ("graph node id", "graph_node_id"),
    ("Collective name", "collective"),
)
_RUNTIME = (
    ("External id", "external_id"),
    ("correlation", "correlation"),
    ("external id", "external_id"),
    ("bytes", "bytes"),
    ("kernel", "kernel"),
    ("graph id", "graph_id"),
    ("graph node id", "graph_node_id"),
)
_LAUNCH = (("grid", "grid"), ("block", "block"), ("stream", "stream"), ("device", "device"))
_XLA = (
    ("correlation_id", "correlation"),
    ("tf_op", "scope"),
    ("name_scope", "scope"),
    ("long_name", "long_name"),
    ("hlo_module", "hlo_module"),
    ("hlo_op", "hlo_op"),
    ("hlo_category", "hlo_category"),
    ("source", "source"),
    ("model_flops", "flops"),
    ("bytes_accessed", "bytes_accessed"),
    ("run_id", "run_id"),
    ("group_id", "group_id"),
    ("step_num", "step"),
    ("stream_id", "stream"),
    ("device_ordinal", "device"),
    ("occupancy_pct", "occupancy_percent"),
)
_MEMORY = (
    ("Total Reserved", "reserved"),
    ("Total Allocated", "allocated"),
    ("Bytes", "bytes"),
    ("Device Id", "device"),
    ("Device Type", "device_type"),
)


class Families:
    """The families of the events' kinds, with the args that become columns of `read`."""

    def __init__(self, read: Collection[str]) -> None:
        self._read = read
        collective = self._more("collective", _COLLECTIVE)
        triton = self._more("kernel_backend", _TRITON)
        host = self._family(_HOST, more={**collective, **triton})
        annotation = self._family(_HOST, _MARK, more={**collective, **triton})
        device = self._family(_DEVICE, more=collective)
        runtime = self._family(_RUNTIME, more=self._more("kernel", _LAUNCH))
        self._any = self._family(_HOST, _TRITON, _PYTHON, _DEVICE, _RUNTIME, _LAUNCH, _XLA, more=collective)
        self._of_kind = {
            Kind.HOST_OP: host,
            Kind.ANNOTATION: annotation,
            **dict.fromkeys((Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET, Kind.SYNC, Kind.DEVICE_ANNOTATION), device),
            **dict.fromkeys((Kind.RUNTIME, Kind.DRIVER), runtime),
            Kind.PYTHON: self._family(_PYTHON),
        }

    def of(self, kind: Kind) -> Family:
        """The args that events of this kind may have; all that there are where the kind says nothing."""
        return self._of_kind.get(kind, self._any)

    def _more(self, trigger: str, group: _Group) -> dict[str, Family]:
        return {trigger: self._family(group)} if trigger in self._read else {}

    def _family(self, *groups: _Group, more: Mapping[str, Family] | None = None) -> Family:
        return _family(*(tuple(pair for pair in group if pair[1] in self._read) for group in groups), more=more)


def _family(*groups: _Group, more: Mapping[str, Family] | None = None, how_of: Mapping[str, str] = SIDE_COLUMNS) -> Family:
    names = dict.fromkeys(pair for group in groups for pair in group)
    columns = {column for _, column in names}
    fields, args = [], []
    for number, (key, column) in enumerate(names):
        attribute = f"arg{number}"
        how = JSON_TEXT if column in _AS_JSON else how_of[column]
        fields.append((attribute, msgspec.Raw if how == JSON_TEXT else Any, msgspec.field(default=None, name=key)))
        only_with = _ONLY_WITH.get(column)
        args.append(Arg(attrgetter(attribute), column, how, only_with if only_with in columns else None))
    struct = msgspec.defstruct("Args", fields, gc=False)
    return Family(msgspec.json.Decoder(list[struct]), msgspec.json.Decoder(struct), struct(), tuple(args), more or {})


MEMORY = _family(_MEMORY, how_of={column: INTEGERS for _, column in _MEMORY})
