"""Errors that a watch would have raised, and on which the program counts."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.effects import caught
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted

TRAINS = {"backward", "manual_backward", "fit"}


def no_gradient_is_skipped(project: Project) -> None:
    """Raises `UsageError` where the program goes on behind an error of a backward pass: it may count on anomaly mode to raise it."""
    for file in project.parsed():
        for call in file.calls:
            if callees.called_name(call) in TRAINS or file.full_name(call.func) == "torch.autograd.grad":
                _borne(project, file, call, {"RuntimeError"})


def by_hook(project: Project, file: PythonFile, hook: cst.FunctionDef, entered: cst.CSTNode, where: PythonFile) -> None:
    """Raises `UsageError` where the program goes on behind an error that the hook of a mode raises in the block that enters it."""
    raised = {_name(each) for each in descendants(hook.body, cst.Raise)}  # type: ignore[arg-type]
    raised |= {"AssertionError" for _ in descendants(hook.body, cst.Assert)}
    block = next((up for up in where.ancestors(entered) if isinstance(up, cst.With)), entered)
    if raised:
        _borne(project, where, block, raised)


def _name(raising: cst.Raise) -> str:
    made = raising.exc.func if isinstance(raising.exc, cst.Call) else raising.exc
    return (dotted(made) or "").split(".")[-1]


def _borne(project: Project, file: PythonFile, node: cst.CSTNode, raised: set[str]) -> None:
    found = caught.bearing(project, file, node, raised)
    if found is not None:
        where, handler = found
        raise refuse(f"{where.location(handler)}: the program goes on behind an error that it may count on to be raised")
