"""Traces of an unmodified program: the seed's regions marked where torch's own marks say where they are, and operations counted.

Without editing the program `data`, `backward`, `optimizer_step` and `grad_sync` can be told; `forward` and `loss` cannot: nothing marks
where one ends and the other begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainflash.errors import UsageError
from trainflash.gate.measure import flops
from trainflash.schema import write_atomically

_MARKS = (
    ("data", re.compile(r"enumerate\(DataLoader\)#.*__next__")),
    ("optimizer_step", re.compile(r"Optimizer\.step#")),
    ("grad_sync", re.compile(r"(?:nccl|gloo|mpi):|c10d::")),
)
_ENGINE = "autograd::engine::evaluate_function"
_STEP = re.compile(r"ProfilerStep#\d+")
NOT_TOLD = "forward and loss cannot be told apart in traces of an unmodified program; the step-function API marks all six regions"


@dataclass(frozen=True)
class Marked:
    """One trace: the regions that were marked, whole steps in it, and operations a step; None: the shapes were not recorded."""

    regions: tuple[str, ...]
    steps: int
    operations: float | None
    attention: float | None  # products of activations in the forward


def mark(source: Path, destination: Path) -> Marked:
    """Copy a trace to `destination` with regions marked. Raises `UsageError` for a file that is no trace."""
    try:
        document = json.loads(source.read_text(encoding="utf-8", errors="replace"))
        events = document["traceEvents"]
    except (OSError, ValueError, KeyError, TypeError) as bad:
        raise UsageError(f"{source} is no trace: {bad}", "profile again") from None
    spans = [event for event in events if event.get("ph") == "X" and isinstance(event.get("name"), str)]
    steps = [event for event in spans if _STEP.fullmatch(event["name"]) and event.get("cat") == "user_annotation"]
    marks = [
        _region(event, name) for name, pattern in _MARKS for event in spans if event.get("cat") != "kernel" and pattern.match(event["name"])
    ]
    marks += [region for step in steps if (region := _backward(step, spans)) is not None]
    events += marks
    write_atomically(destination, json.dumps(document))
    inside = [event for event in spans if any(_within(event, step) for step in steps)]
    operations, attention = _operations(inside, len(steps))
    regions = tuple(dict.fromkeys(event["name"] for event in marks))
    return Marked(regions, len(steps), operations, attention)


def _region(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    kept = {key: event[key] for key in ("ph", "pid", "tid", "ts", "dur") if key in event}
    return {**kept, "cat": "user_annotation", "name": name}


def _backward(step: Mapping[str, Any], spans: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """From the first to the last function of the autograd engine in one step; None without any."""
    engine = [event for event in spans if event["name"].startswith(_ENGINE) and _within(event, step)]
    if not engine:
        return None
    first = min(engine, key=lambda event: event["ts"])
    end = max(event["ts"] + event.get("dur", 0) for event in engine)
    return _region({**first, "dur": end - first["ts"]}, "backward")


def _within(event: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
    return step["ts"] <= event["ts"] < step["ts"] + step["dur"]


def _operations(spans: Iterable[Mapping[str, Any]], steps: int) -> tuple[float | None, float | None]:
    """(all, products of activations in the forward) a step; `bmm` outside the autograd engine's functions belongs to the forward."""
    calls, forward = [], []
    engine = []
    for event in spans:
        if event["name"].startswith(_ENGINE):
            engine.append((event["tid"], event["ts"], event["ts"] + event.get("dur", 0)))
    for event in spans:
        dims = event.get("args", {}).get("Input Dims")
        if event.get("cat") != "cpu_op" or dims is None:
            continue
        call = (event["name"], [shape for shape in dims])
        calls.append(call)
        if event["name"] in ("aten::bmm", "aten::baddbmm") and not any(
            tid == event["tid"] and begin <= event["ts"] < end for tid, begin, end in engine
        ):
            forward.append(call)
    if not calls or not steps:
        return None, None
    total, fused = flops.of_operators(calls)
    return total / steps, (fused + flops.of_operators(forward)[0]) / steps
