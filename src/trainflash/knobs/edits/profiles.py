"""A profiler whose recording the program only shows or writes: it goes, and with it the statements that show."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import taken_away
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import ShownProfile
from trainflash.knobs.reading.expressions import is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

WRITES = "torch.profiler.tensorboard_trace_handler"
SHOWS = ("print", "str", "os.path.join")
LOGS = ("info", "debug", "warning")
STEP = "step"
HANDLER = "on_trace_ready"


def shown_profile(edit: ShownProfile, scene: Scene) -> tuple[Target, ...]:
    """`contextlib.nullcontext()` in place of the profiler of a `with`. Raises `UsageError` where its recording is used in another way."""
    file, call = the_call(edit, scene)
    here = file.location(call)
    item = file.parent(call)
    if not isinstance(item, cst.WithItem):
        raise refuse(f"{here}: the profiler is not that of a `with` block")
    handler = keyword(call, HANDLER)
    if handler is not None and not (isinstance(handler.value, cst.Call) and file.full_name(handler.value.func) == WRITES):
        raise refuse(f"{here}: what `{file.text(handler.value)}` does with the recording is not known")
    shown = _shown(file, call, item)
    spelled, needed = imports.reach(file, "contextlib", "nullcontext")
    away = [splice for each in shown for splice in taken_away(file, each)]
    splices = (*needed, Splice(file.path, *file.span(call), f"{spelled}()"), *away)
    more = f", and {len(shown)} statements that show what it saw" if shown else ""
    target = Target(here, None, lambda value: splices, f"`{file.text(call.func)}` at {here}{more}", "taken away")
    if any(not isinstance(each.func, cst.Attribute) or each.func.attr.value != STEP for each in shown):
        target = replace(target, risk="cadence", because="what the profiler saw is not shown or written any more")
    return (target,)


def _shown(file: PythonFile, call: cst.Call, item: cst.WithItem) -> list[cst.Call]:
    """The statements that speak of the profiler. Raises `UsageError` for one that does more than show or write what it recorded."""
    name = dotted(item.asname.name) if item.asname is not None else None  # type: ignore[arg-type]
    if item.asname is None:
        return []
    function = file.function_around(call)
    found: dict[int, cst.Call] = {}
    for node in descendants(function or file.module, cst.Name):
        if node.value != name or node is item.asname.name or not is_name(file, node):
            continue
        small = sole(file.statement(node))
        if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call) or not _only_shows(file, small.value, node.value):
            raise refuse(f"{file.location(node)}: what {name} recorded is used here")
        found[id(small)] = small.value
    if name is None or any(isinstance(each, cst.Global) for each in file.nodes):
        raise refuse(f"{file.location(call)}: who reads what the profiler recorded cannot be told")
    return list(found.values())


def _only_shows(file: PythonFile, statement: cst.Call, name: str) -> bool:
    """Whether every call of the statement is the profiler's own, or one that shows or writes."""
    return all(
        _root(each) == name or file.full_name(each.func) in SHOWS or (isinstance(each.func, cst.Attribute) and each.func.attr.value in LOGS)
        for each in descendants(statement, cst.Call)
    )


def _root(node: cst.BaseExpression) -> str | None:
    """The name that a chain of attributes and calls begins with."""
    while isinstance(node, (cst.Call, cst.Attribute)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else None
