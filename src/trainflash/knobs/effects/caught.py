"""Whether the training goes on behind an error: a handler around catches it, and does not raise it again."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted

DEEPEST = 4  # own: callers of callers
EXITS = ("sys.exit", "exit", "quit", "os._exit")
TELLS = ("print", "print_exc", "debug", "info", "warning", "error", "exception", "critical", "log", "close", "finish")
MEMORY = ("memory", "OutOfMemory", "OOM", "oom")  # a handler that lives on after these alone


def bearing(project: Project, file: PythonFile, node: cst.CSTNode, raised: set[str]) -> tuple[PythonFile, cst.ExceptHandler] | None:
    """The first handler around `node`, or around a call of its function, after which the program goes on when one of `raised` is raised."""
    return next(_around(project, file, node, raised, DEEPEST, set()), None)


def _around(
    project: Project, file: PythonFile, node: cst.CSTNode, raised: set[str], depth: int, seen: set[int]
) -> Iterator[tuple[PythonFile, cst.ExceptHandler]]:
    below = node
    for up in file.ancestors(node):
        if isinstance(up, cst.Try) and below is up.body:
            for handler in up.handlers:
                if _catches(file, handler, raised) and _goes_on(file, handler):
                    yield file, handler
        if isinstance(up, cst.FunctionDef):
            if depth and id(up) not in seen:
                seen.add(id(up))
                for where, call in callers.sites(project, file, up):
                    yield from _around(project, where, call, raised, depth - 1, seen)
            return
        below = up


def _catches(file: PythonFile, handler: cst.ExceptHandler, raised: set[str]) -> bool:
    """Whether a handler may catch one of `raised`; a class of a library's own is none of Python's that are raised."""
    if handler.type is None:
        return True
    kinds = [each.value for each in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
    return any(_fits(file, kind, name) for kind in kinds for name in raised)


def _fits(file: PythonFile, kind: cst.BaseExpression, raised: str) -> bool:
    name = (dotted(kind) or "").split(".")[-1]
    known, thrown = getattr(builtins, name, None), getattr(builtins, raised, None)
    if isinstance(known, type):
        return not isinstance(thrown, type) or issubclass(thrown, known)
    tuples = [each for value in given_to(file.module, name) if isinstance(value, cst.Tuple) for each in value.elements]
    return name == raised or any(_fits(file, each.value, raised) for each in tuples)


def _goes_on(file: PythonFile, handler: cst.ExceptHandler) -> bool:
    """Whether the program goes on behind the handler: it raises nothing, and does more than tell, or stands in a loop."""
    last = handler.body.body[-1]
    small = last.body[-1] if isinstance(last, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) else None
    if isinstance(small, cst.Raise) or any(file.full_name(call.func) in EXITS for call in descendants(handler.body, cst.Call)):  # type: ignore[attr-defined]
        return False
    if any(True for _ in descendants(handler.body, cst.Raise)) and any(word in file.text(handler.body) for word in MEMORY):
        return False
    if next(file.loops_around(handler), None) is not None:
        return True
    calls = [each.value if isinstance(each, cst.Expr) else each for line in handler.body.body for each in getattr(line, "body", (line,))]
    return not all(isinstance(each, cst.Pass) or (isinstance(each, cst.Call) and callees.called_name(each) in TELLS) for each in calls)
