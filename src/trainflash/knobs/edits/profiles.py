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
STATISTICS = "pstats.Stats"
SHOWS = ("print", "str", "os.path.join", STATISTICS)
LOGS = ("info", "debug", "warning")
STARTS = ("start", "enable")
RUNS = ("step", "start", "stop", "enable", "disable")
HANDLER = "on_trace_ready"


def shown_profile(edit: ShownProfile, scene: Scene) -> tuple[Target, ...]:
    """`contextlib.nullcontext()` in place of the profiler of a `with`; one that has a name of its own goes with all that speaks of it.

    Raises `UsageError` where its recording is used in another way.
    """
    file, call = the_call(edit, scene)
    here = file.location(call)
    item = file.parent(call)
    bound = _bound(item)
    if not isinstance(item, cst.WithItem) and bound is None:
        raise refuse(f"{here}: the profiler is neither that of a `with` block nor kept in one name")
    handler = keyword(call, HANDLER)
    if handler is not None and not (isinstance(handler.value, cst.Call) and file.full_name(handler.value.func) == WRITES):
        raise refuse(f"{here}: what `{file.text(handler.value)}` does with the recording is not known")
    shown = _shown(file, call, bound) if bound is not None else []
    away = tuple(splice for each, name in shown for splice in taken_away(file, each, name))
    if isinstance(item, cst.WithItem):
        spelled, needed = imports.reach(file, "contextlib", "nullcontext")
        splices = (*needed, Splice(file.path, *file.span(call), f"{spelled}()"), *away)
    else:
        splices = (*taken_away(file, call, bound), *away)
    more = f", and {len(shown)} statements that show what it saw" if shown else ""
    target = Target(here, None, lambda value: splices, f"`{file.text(call.func)}` at {here}{more}", "taken away")
    if any(not isinstance(each.func, cst.Attribute) or each.func.attr.value not in RUNS for each, _ in shown):
        target = replace(target, risk="cadence", because="what the profiler saw is not shown or written any more")
    return (target,)


def _bound(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """What the profiler is called: behind `as`, or by an assignment to one name."""
    if isinstance(node, cst.WithItem):
        return node.asname.name if node.asname is not None else None
    plain = isinstance(node, cst.Assign) and len(node.targets) == 1
    return node.targets[0].target if plain and isinstance(node.targets[0].target, cst.Name) else None  # type: ignore[union-attr]


def _shown(file: PythonFile, call: cst.Call, bound: cst.BaseExpression) -> list[tuple[cst.Call, cst.BaseExpression | None]]:
    """The statements that speak of the profiler, and what they name in turn.

    Raises `UsageError` for one that does more than show or write what it recorded, and where a condition decides whether it runs.
    """
    name = dotted(bound)
    if name is None or any(isinstance(each, cst.Global) for each in file.nodes):
        raise refuse(f"{file.location(call)}: who reads what the profiler recorded cannot be told")
    function = file.function_around(call)
    names = {name}
    found: dict[int, tuple[cst.Call, cst.BaseExpression | None]] = {}
    for node in descendants(function or file.module, cst.Name):
        if node.value not in names or node is bound or not is_name(file, node):  # type: ignore[attr-defined,arg-type]
            continue
        small = sole(file.statement(node))
        told = small.value if isinstance(small, (cst.Expr, cst.Assign)) else None
        if not isinstance(told, cst.Call) or not _only_shows(file, told, names):
            raise refuse(f"{file.location(node)}: what {node.value} recorded is used here")  # type: ignore[attr-defined]
        target = _bound(small)
        if isinstance(small, cst.Assign):
            if target is None or file.full_name(told.func) != STATISTICS:
                raise refuse(f"{file.location(node)}: what {node.value} recorded is used here")  # type: ignore[attr-defined]
            names.add(dotted(target) or "")
        starts = isinstance(told.func, cst.Attribute) and told.func.attr.value in STARTS
        if starts and any(isinstance(up, cst.If) for up in file.ancestors(told)):
            raise refuse(f"{file.location(told)}: a condition decides whether {name} runs")
        found[id(small)] = told, target
    return list(found.values())


def _only_shows(file: PythonFile, statement: cst.Call, names: set[str]) -> bool:
    """Whether every call of the statement is the profiler's own, or one that shows or writes."""
    return all(
        _root(each) in names
        or file.full_name(_first(each).func) in SHOWS
        or (isinstance(each.func, cst.Attribute) and each.func.attr.value in LOGS)  # type: ignore[attr-defined]
        for each in descendants(statement, cst.Call)
    )


def _first(node: cst.CSTNode) -> cst.Call:
    """The first call of a chain such as `pstats.Stats(found).sort_stats("time").print_stats()`."""
    assert isinstance(node, cst.Call)
    inner = node.func.value if isinstance(node.func, cst.Attribute) else None
    return _first(inner) if isinstance(inner, cst.Call) else node


def _root(node: cst.BaseExpression) -> str | None:
    """The name that a chain of attributes and calls begins with."""
    while isinstance(node, (cst.Call, cst.Attribute)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else None
