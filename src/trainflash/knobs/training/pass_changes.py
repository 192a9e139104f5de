"""What the training changes of its data while it goes through a loader: workers are ahead of it, with the copies that they began with."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.training import worker_state
from trainflash.knobs.training.backward_loops import backward_loops

STEPS = {
    "compute_loss", "on_after_backward", "on_batch_end", "on_batch_start", "on_before_zero_grad", "on_step_begin", "on_step_end",
    "on_train_batch_end", "on_train_batch_start", "training_step", "validation_step",
}  # fmt: skip  # methods that a trainer calls for each batch
DEEPEST = 3  # own: functions between a loop over batches and a change


def none(project: Project, call: cst.Call) -> None:
    """Raises `UsageError` where the data of the loader `call`, or what says which come next, changes while somebody goes through it."""
    loops = {id(loop) for loop in _loops(project, call)}
    for file, node, told in worker_state.changed(project, samplers=True):
        if _within(project, file, node, loops):
            raise refuse(f"{file.location(node)}: {told} while a pass runs, and workers make batches ahead of it from copies")


def _loops(project: Project, call: cst.Call) -> Iterator[cst.CSTNode]:
    """Loops over batches: around a backward pass, and over what the call makes, or over what is named as a loader."""
    for each in backward_loops(project):
        yield each.loop
    names = _names(project, call)
    for file in project.parsed():
        for loop in file.each(cst.For):
            said = [each.value for each in descendants(loop.iter, cst.Name)]  # type: ignore[attr-defined]
            if any("load" in name.lower() or name in names for name in said):
                yield loop


def _names(project: Project, call: cst.Call) -> set[str]:
    """The last names that what the call makes is given, or that of the function that returns it."""
    for file in project.parsed():
        if any(call is each for each in file.calls):
            up = file.parent(call)
            if isinstance(up, cst.Assign):
                return {(dotted(each.target) or "").split(".")[-1] for each in up.targets} - {""}
            function = file.function_around(call)
            return {function.name.value} if isinstance(up, cst.Return) and function is not None else set()
    return set()


def _within(project: Project, file: PythonFile, node: cst.CSTNode, loops: set[int]) -> bool:
    """Whether `node` runs within one of the loops, itself or by a call."""
    return any(
        any(id(loop) in loops for loop in where.loops_around(each)) or _is_step(where.function_around(each))
        for where, each in callers.led_from(project, file, node, DEEPEST)
    )


def _is_step(function: cst.FunctionDef | None) -> bool:
    return function is not None and function.name.value in STEPS
