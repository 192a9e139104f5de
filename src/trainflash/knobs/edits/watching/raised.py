"""Errors that a watch would have raised, and on which the program counts."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.effects import caught
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile

TRAINS = {"backward", "manual_backward", "fit"}


def no_gradient_is_skipped(project: Project) -> None:
    """Raises `UsageError` where the program goes on behind an error of a backward pass: it may count on anomaly mode to raise it."""
    for file in project.parsed():
        for call in file.calls:
            if callees.called_name(call) in TRAINS or file.full_name(call.func) == "torch.autograd.grad":
                _borne(project, file, call, {"RuntimeError"})


def _borne(project: Project, file: PythonFile, node: cst.CSTNode, raised: set[str]) -> None:
    found = caught.bearing(project, file, node, raised)
    if found is not None:
        where, handler = found
        raise refuse(f"{where.location(handler)}: the program goes on behind an error that it may count on to be raised")
