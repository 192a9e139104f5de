"""What holds in one thread alone, so that another, which makes the batches, would go without it: settings, contexts, connections."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits.waits import gone_through
from trainflash.knobs.edits.waits.gone_through import Place
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import given_to, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted

DATABASE = {"cursor", "execute", "executemany", "fetchall", "fetchmany", "fetchone"}
DEVICES = ("set_device", "cuda.stream(", "cuda.device(")  # each thread has one of its own
SETTINGS = {
    "asyncio.get_event_loop", "contextvars.ContextVar", "decimal.getcontext", "decimal.setcontext", "numpy.seterr", "numpy.seterrcall",
    "threading.local", "torch.set_autocast_cpu_enabled", "torch.set_autocast_dtype", "torch.set_autocast_enabled",
    "torch.set_autocast_gpu_dtype", "torch.set_default_device", "torch.set_grad_enabled",
}  # fmt: skip  # of the thread that calls them
# Those of gradients are none: what makes batches may run no network, and what is no network's has none.
CONTEXTS = {
    "decimal.localcontext", "numpy.errstate", "torch.amp.autocast", "torch.autocast", "torch.cpu.amp.autocast", "torch.cuda.amp.autocast",
    "torch.cuda.device", "torch.cuda.stream", "torch.device",
}  # fmt: skip  # count for whoever goes through the batches, as a generator runs in its thread
DEEPEST = 3  # own: functions between a context and whoever goes through the batches


def nothing(project: Project, start: Function, inside: list[Function]) -> None:
    """Raises `UsageError` where what makes the batches counts on something of the thread that goes through them."""
    _devices(project, inside)
    for file in project.parsed():
        for call in file.calls:
            if file.full_name(call.func) in SETTINGS and not _entered(file, call):
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` is a setting of one thread, and another makes the batches")
    for where, node in gone_through.places(project, *start):
        for file, context in _around(project, where, node, 0):
            if _of_thread(project, file, context):
                told = f"`{short(file.text(context))}` counts in one thread, and another makes the batches"
                raise refuse(f"{file.location(context)}: {told}")


def _devices(project: Project, inside: list[Function]) -> None:
    uses = any(word in where.text(each) for where, each in inside for word in ("cuda", "device", ".to("))
    for word in DEVICES if uses else ():
        for where in project.parsed(word):
            raise refuse(f"{where.path}: `{word.rstrip('(')}` is a setting of one thread, and another makes the batches")
    asked = any(callees.method_name(call) in DATABASE for _, each in inside for call in descendants(each.body, cst.Call))  # type: ignore[arg-type]
    for where in project.parsed("sqlite3") if asked else ():
        raise refuse(f"{where.path}: a connection of sqlite3 serves the thread that made it, and another makes the batches")


def _entered(file: PythonFile, call: cst.Call) -> bool:
    """Whether a call makes a context, and is no setting for good: in the head of a `with`, as a decorator, or given to a name."""
    return isinstance(file.parent(call), (cst.WithItem, cst.Decorator, cst.Assign, cst.IfExp))


def _around(project: Project, file: PythonFile, node: cst.CSTNode, depth: int) -> Iterator[Place]:
    """Contexts and decorators around `node`, also where its function is called."""
    for up in file.ancestors(node):
        if isinstance(up, cst.With) and file.inside(node, up.body):
            yield from ((file, item.item) for item in up.items)
        if isinstance(up, cst.FunctionDef):
            yield from ((file, each.decorator) for each in up.decorators)
    function = file.function_around(node)
    for where, site in callers.sites(project, file, function) if function is not None and depth < DEEPEST else ():
        yield from _around(project, where, site, depth + 1)


def _of_thread(project: Project, file: PythonFile, context: cst.CSTNode) -> bool:
    name = dotted(context)
    made = [*given_to(file.module, name)] if name is not None else [context]
    for each in made:
        for call in descendants(each, cst.Call):
            full = file.full_name(call.func) or ""  # type: ignore[attr-defined]
            if full in CONTEXTS or full.endswith("Mode") or _is_mode(project, callees.called_name(call)):  # type: ignore[arg-type]
                return True
    return False


def _is_mode(project: Project, name: str) -> bool:
    """Whether a class of the program watches each operation of its thread."""
    classes = (node for where in project.parsed(f"class {name}") for node in where.nodes if isinstance(node, cst.ClassDef)) if name else ()
    return any(each.name.value == name and any(base.endswith("Mode") for base in base_names(each)) for each in classes)
