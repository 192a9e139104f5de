"""What goes with a call that is taken away: what its arguments do, and who reads what the call changes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import harmless, quiet, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, targets_of

TRACES, ASKED, FIGURE = "tracemalloc.start", "tracemalloc.is_tracing", "tracemalloc.get_traced_memory"
FREE = {"mem_get_info", "memory_reserved", "max_memory_reserved", "memory_stats", "memory_snapshot", "memory_cached", "device_memory_used"}
FREE |= {"nvmlDeviceGetMemoryInfo"}
SHARED = {"share_memory", "share_memory_", "SharedMemory", "ShareableList", "reductions"}
TELLS = {"put", "put_nowait", "send", "send_bytes", "notify", "notify_all", "release", "store"}  # another process goes on
PROCESSES = ("multiprocessing.", "torch.multiprocessing.")
BETWEEN = {"Array", "Barrier", "Condition", "Event", "Manager", "Pipe", "Queue", "RawArray", "RawValue", "SimpleQueue", "Value"}


def arguments_do_nothing(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where an argument takes, draws or changes something, or a function that is handed over draws."""
    for arg in call.args:
        handed = isinstance(arg.value, cst.Lambda)
        found = quiet.Quiet(project) if handed else quiet.Quiet(project).look(file, [arg.value])
        if found.told:
            raise refuse(f"{found.told}, which goes with `{short(file.text(call.func))}`")
        if found.drawn:
            raise refuse(f"{file.location(call)}: {found.drawn}, and what is drawn behind it would be other numbers")
        for where, part in _run(project, file, arg.value):
            drawing = next((each for each in descendants(part, cst.Call) if harmless.draws(where, each)), None)  # type: ignore[arg-type]
            if drawing is not None:
                raise refuse(
                    f"{where.location(drawing)}: `{short(where.text(drawing))}` draws, and what is drawn behind it would be others"
                )


def _run(project: Project, file: PythonFile, handed: cst.BaseExpression) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """What a call may run of what it is handed: a lambda, a function of the program, the two passes of an autograd function."""
    starts: list[tuple[PythonFile, cst.FunctionDef]] = []
    if isinstance(handed, cst.Lambda):
        yield file, handed.body
        starts = [each for call in descendants(handed.body, cst.Call) for each in callees.meant(project, file, call)]  # type: ignore[arg-type]
    elif isinstance(handed, cst.Attribute) and handed.attr.value == "apply":
        owner = (dotted(handed.value) or "").split(".")[-1]
        both = [each for name in ("forward", "backward") for each in project.functions(name)]
        starts = [each for each in both if (known := each[0].class_of(each[1])) is not None and known.name.value == owner]
    elif isinstance(handed, (cst.Name, cst.Attribute)):
        starts = list(callees.behind(project, file, handed))
    yield from ((where, each.body) for where, each in callees.reached(project, starts))


def asks_what_is_traced(project: Project, start: cst.Call) -> bool:
    """Whether the program shows how much is traced, as a figure that would be 0.

    Raises `UsageError` where it names anything else of `tracemalloc` but the call `start` and the question in front of it.
    """
    shown = False
    for file in project.parsed("tracemalloc"):
        for node in file.nodes:
            if not isinstance(node, (cst.Attribute, cst.Name)) or isinstance(file.parent(node), (cst.ImportAlias, cst.ImportFrom)):
                continue
            full = file.full_name(node) or ""
            if not full.startswith("tracemalloc.") or node is start.func or isinstance(file.parent(node), cst.Attribute):
                continue
            guards = [up.test for up in file.ancestors(start) if isinstance(up, cst.If) and up.orelse is None]
            if full == ASKED and any(file.inside(node, test) for test in guards):
                continue
            if full == FIGURE and _plainly_shown(file, node):
                shown = True
                continue
            why = "starts tracing as well" if full == TRACES else "reads or changes what is traced"
            raise refuse(f"{file.location(node)}: `{file.text(node)}` {why}")
    return shown


def _plainly_shown(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether a figure is printed or logged as it is: nothing is computed of it."""
    computes = (cst.BinaryOperation, cst.Comparison, cst.IfExp, cst.BooleanOperation)
    if any(isinstance(up, computes) for up in file.ancestors(node)):
        return False
    return writers.stands_in_call(file, node, ("print", "debug", "info", "warning", "log"))


def nobody_asks_for_free_memory(project: Project) -> None:
    """Raises `UsageError` where the program asks how much memory is free or reserved, and does more with the answer than to show it."""
    for file in project.parsed():
        for call in file.calls:
            if callees.called_name(call) in FREE and not writers.stands_in_call(file, call, ("print", "debug", "info", "warning", "log")):
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` tells how much the allocator holds, which would be more")


def nobody_is_told(project: Project, file: PythonFile, wait: cst.Call) -> None:
    """Raises `UsageError` where another process may be told, behind the wait, that what is on the device is ready."""
    for where in project.parsed():
        for call in where.calls:
            name, full = callees.called_name(call), where.full_name(call.func) or ""
            between = full.startswith(PROCESSES) and name in BETWEEN
            if name in SHARED or between:
                raise refuse(f"{where.location(call)}: another process may read what `{short(where.text(call))}` shares behind the wait")
    around = file.function_around(wait) or file.module
    for node in descendants(around, (cst.Assign, cst.AugAssign, cst.Call)):
        if file.span(node)[0] < file.span(wait)[0]:
            continue
        told = isinstance(node, cst.Call) and callees.method_name(node) in TELLS and isinstance(file.parent(node), cst.Expr)
        counted = any(isinstance(each, cst.Attribute) and each.attr.value == "value" for each in targets_of(node))
        if told or counted:
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` may tell another process that the work is done")
