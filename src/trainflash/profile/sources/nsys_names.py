"""What the numbers and names in an export of nsys mean: copies, memory, waits, NVTX ranges.

Source: "SQLite Schema Event Values" of NVIDIA Nsight Systems, and PyTorch's `getNvtxStr` for the ranges of `emit_nvtx`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainflash.profile.categories import step_number
from trainflash.profile.events import Kind

_COPIES = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_UNIFIED = {11: "HtoD", 12: "DtoH", 13: "DtoD"}  # moved by the driver, on a fault or a prefetch
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
_SYNCS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}  # as Kineto names them
WHOLE_GRAPH = "CUDA graph, not taken apart"
_VERSION = re.compile(r"(?:_v\d+)?(?:_pt[sd][zs])?(?:_v\d+)?$")
_OPERATOR = re.compile(
    r"^(?P<name>[^,]+?)(?:, seq = (?P<seq>\d{1,18}))?(?:, op_id = \d+)?(?:, sizes = (?P<sizes>\[.*?\]))?(?:, input_op_ids = .*)?$"
)
_QUALIFIED = re.compile(r"\w+::\w")
_STEP = re.compile(r"^(?:\w{1,20}[ _-])?(?:step|iter|iteration)[ _:#=-]*(\d{1,15})$", re.IGNORECASE)


@dataclass(frozen=True)
class Range:
    """What the text of an NVTX range says."""

    name: str
    kind: Kind
    sequence: int | None = None  # of an operator that autograd records
    step: int | None = None  # number of the step that it marks
    sizes: str | None = None  # of an operator's inputs


def call(name: str) -> str:
    """The name of an API call without the version that nsys writes behind it."""
    return _VERSION.sub("", name)


def memset(kind: int) -> str:
    return f"Memset ({_MEMORY.get(kind, 'Device')})"


def wait(kind: int) -> str:
    return _SYNCS.get(kind, "Sync")


def copy(kind: int, source: int, target: int) -> str:
    """The name that Kineto gives such a copy; the managed kinds are their own."""
    way = _COPIES.get(kind)
    if way is None:
        return f"Memcpy {_UNIFIED[kind]} (Managed -> Managed)" if kind in _UNIFIED else "Memcpy"
    ends = (_MEMORY.get(source), _MEMORY.get(target))
    return f"Memcpy {way} ({ends[0]} -> {ends[1]})" if all(ends) else f"Memcpy {way}"


def nvtx_range(text: str) -> Range:
    """An operator that PyTorch named, the mark of a step, or whatever the program names."""
    found = _OPERATOR.match(text)
    if found and (found["seq"] or found["sizes"] or _QUALIFIED.match(text)):
        return Range(found["name"], Kind.HOST_OP, sequence=int(found["seq"]) if found["seq"] else None, sizes=found["sizes"])
    step = step_number(text)
    if step is None and (numbered := _STEP.match(text)):
        step = int(numbered[1])
    return Range(text, Kind.ANNOTATION, step=step)
