"""The backward passes of a program, and the loops over micro-batches around them, also where a function of its own makes the pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants

DEEPEST = 3  # functions between a loop and its backward pass


@dataclass(frozen=True)
class BackwardLoop:
    """The innermost loop around a backward pass, or, without one, its function or file; `helpers` are the functions between the two."""

    project: Project
    file: PythonFile
    loop: cst.CSTNode
    backward: tuple[PythonFile, cst.Call]
    helpers: tuple[tuple[PythonFile, cst.FunctionDef], ...] = ()
    sites: tuple[tuple[PythonFile, cst.Call], ...] = ()  # where the helpers are called, the outermost last

    def each(self, kinds: type | tuple[type, ...]) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
        """All nodes of `kinds` in the loop and in the functions between it and the backward pass."""
        for file, node in ((self.file, self.loop), *self.helpers):
            yield from ((file, found) for found in descendants(node, kinds))

    def here(self) -> object:
        return self.file.path if isinstance(self.loop, cst.Module) else self.file.location(self.loop)


def backward_loops(project: Project) -> Iterator[BackwardLoop]:
    """One for each backward pass of the program."""
    for file in project.parsed("backward"):
        for call in file.calls:
            if _passes(project, file, call):
                yield _around(project, file, call)


def _passes(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether `call` runs a backward pass itself: a method of the program's that is called so does not."""
    return callees.called_name(call) == "backward" and isinstance(call.func, cst.Attribute) and not callees.own_method(project, file, call)


def _around(project: Project, file: PythonFile, call: cst.Call) -> BackwardLoop:
    backward = (file, call)
    first = up = _up(file, call)
    where, helpers, called = file, [], []
    for _ in range(DEEPEST):
        if not isinstance(up, cst.FunctionDef):
            break
        sites = [(other, site) for other, site in callers.sites(project, where, up) if not _passes(project, other, site)]
        if len(sites) != 1:
            break
        helpers.append((where, up))
        called.append(sites[0])
        where, up = sites[0][0], _up(*sites[0])
    if isinstance(up, LOOPS):
        return BackwardLoop(project, where, up, backward, tuple(helpers), tuple(called))
    return BackwardLoop(project, file, first, backward)


def _up(file: PythonFile, node: cst.CSTNode) -> cst.CSTNode:
    return next((up for up in file.ancestors(node) if isinstance(up, (*LOOPS, cst.FunctionDef))), file.module)
