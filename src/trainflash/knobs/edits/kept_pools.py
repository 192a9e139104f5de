"""A pool of workers that is started for each batch: one that is kept, `with contextlib.nullcontext(_pool(2)) as pool:` and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from trainflash.knobs.edits.kept_calls import cached_maker
from trainflash.knobs.edits.opened import Opened, opened
from trainflash.knobs.kinds import KeptPool
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene, Target

POOLS = {"Pool", "ThreadPool", "ThreadPoolExecutor", "ProcessPoolExecutor"}
MODULES = ("multiprocessing", "concurrent", "torch.multiprocessing")
ENDS = frozenset(("close", "terminate", "join", "shutdown"))
STATE = ("initializer", "initargs")


def kept_pool(edit: KeptPool, scene: Scene) -> tuple[Target, ...]:
    """The one pool that a function starts and ends. Raises `UsageError` where its workers may have to be new ones."""
    found = [each for file in scene.project.parsed() for each in (*opened(file, _opens(file), ENDS), *_handed_out(scene.project, file))]
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} pool of workers is started and ended in a function of the program")
    pool = found[0]
    file, call = pool.file, pool.call
    here = file.location(call)
    others = [arg for arg in call.args if arg.keyword is None or arg.keyword.value not in ("mp_context", "thread_name_prefix")]
    if any(arg.star for arg in call.args) or len(others) > 1 or any(arg.keyword and arg.keyword.value in STATE for arg in call.args):
        raise refuse(f"{here}: workers are given more than their number, which may be another thing each time")
    if pool.item is not None and pool.name:
        for each in descendants(file.function_around(call).body, cst.Call):  # type: ignore[union-attr]
            func = each.func  # type: ignore[attr-defined]
            if isinstance(func, cst.Attribute) and dotted(func.value) == pool.name and func.attr.value in ENDS:
                raise refuse(f"{file.location(each)}: `{file.text(each)}` ends the pool")
    changed = sorted({name.name.value for node in file.nodes if isinstance(node, cst.Global) for name in node.names})
    if changed:
        raise refuse(f"{here}: {changed[0]} is set again while the program runs, and kept workers hold a copy of it")
    name, _, made = cached_maker(file, call)
    own = file.raw[file.span(call.func)[1] : file.span(call)[1]].decode("utf-8")
    splices = tuple(dict.fromkeys((*made, *pool.kept(f"{name}{own}"))))
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "kept"),)


def _opens(file: PythonFile) -> Callable[[cst.Call], bool]:
    return lambda call: _is_pool(file, call)


def _handed_out(project: Project, file: PythonFile) -> Iterator[Opened]:
    """Pools that a function returns to callers who all use it by `with`."""
    for call in file.calls:
        function = file.function_around(call)
        if function is None or not isinstance(file.parent(call), cst.Return) or not _is_pool(file, call):
            continue
        sites = callers.sites(project, file, function)
        if sites and all(isinstance(where.parent(site), cst.WithItem) for where, site in sites):
            yield Opened(file, call, "", call)


def _is_pool(file: PythonFile, call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute):
        full = file.full_name(call.func) or ""
        return full.split(".")[-1] in POOLS and full.startswith(MODULES)
    of = call.func.value
    full = file.full_name(of.func if isinstance(of, cst.Call) else of) or ""
    return call.func.attr.value in POOLS and full.startswith(MODULES)
