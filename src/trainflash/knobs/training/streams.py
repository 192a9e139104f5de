"""What a stream of samples does that a worker process would do otherwise: go on where it was, fill one buffer again, end in an error."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted
from trainflash.knobs.training import data_sets, pass_changes


def ends_in_no_error(project: Project, call: cst.Call) -> None:
    """Raises `UsageError` where the program catches an error that its data raise: a worker's comes with another text, or as another."""
    reached = [*callees.reached(project, data_sets.starts(project))]
    raised = {name for _, function in reached for name in _raised(function)} - {"StopIteration"}
    inside = {id(function) for _, function in reached}
    for file in project.parsed("try") if raised else ():
        for block in file.each(cst.Try):
            caught = [each for each in block.handlers if each.type is not None and _catches(project, file, each, raised)]
            if caught and id(file.function_around(block)) not in inside and pass_changes.goes_through(project, file, block, call):
                told = f"`except {file.text(caught[0].type)}` catches what the data raise"  # type: ignore[arg-type]
                raise refuse(f"{file.location(caught[0])}: {told}, which comes out of a worker with another text, or as another error")


def _raised(function: cst.FunctionDef) -> Iterator[str]:
    for node in descendants(function.body, cst.Raise):
        error = node.exc.func if isinstance(node.exc, cst.Call) else node.exc  # type: ignore[attr-defined]
        if error is not None and dotted(error):
            yield (dotted(error) or "").split(".")[-1]


def _catches(project: Project, file: PythonFile, handler: cst.ExceptHandler, raised: set[str]) -> bool:
    kinds = [each.value for each in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
    names = {(dotted(each) or "").split(".")[-1] for each in kinds}
    return bool(names & (raised | {base for name in raised for base in _bases(project, name)}) - {"Exception", "BaseException"})


def _bases(project: Project, name: str) -> Iterator[str]:
    for file in project.parsed(f"class {name}"):
        for node in file.nodes:
            if isinstance(node, cst.ClassDef) and node.name.value == name:
                yield from base_names(node)
