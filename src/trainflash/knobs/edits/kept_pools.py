"""A pool of workers that is started for each batch: one that is kept, `with contextlib.nullcontext(_pool(2)) as pool:`."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.kept_calls import cached_maker
from trainflash.knobs.kinds import KeptPool
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

POOLS = {"Pool", "ThreadPool", "ThreadPoolExecutor", "ProcessPoolExecutor"}
MODULES = ("multiprocessing", "concurrent", "torch.multiprocessing")
ENDS = {"close", "terminate", "join", "shutdown"}


def kept_pool(edit: KeptPool, scene: Scene) -> tuple[Target, ...]:
    """The one `with …Pool(…) as pool:` in a function. Raises `UsageError` where its workers may have to be new ones."""
    found = [
        (file, item)
        for file in scene.project.parsed("with")
        for item in (node for node in file.nodes if isinstance(node, cst.WithItem))
        if isinstance(item.item, cst.Call) and _is_pool(file, item.item) and file.function_around(item) is not None
    ]
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} pool of workers is started in a function of the program by `with`")
    file, item = found[0]
    call = item.item
    assert isinstance(call, cst.Call)
    here = file.location(call)
    function = file.function_around(item)
    given = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in ("initializer", "initargs")]
    if given or any(arg.star for arg in call.args) or len(call.args) > 1:
        raise refuse(f"{here}: workers are given more than their number, which may be another thing each time")
    if _name_of(file, item) is None:
        raise refuse(f"{here}: the pool has no name of its own")
    ended = [each for each in descendants(function.body, cst.Call) if _ends(each, _name_of(file, item))]  # type: ignore[union-attr]
    if ended:
        raise refuse(f"{file.location(ended[0])}: `{file.text(ended[0])}` ends the pool")  # type: ignore[arg-type]
    changed = sorted({name.name.value for node in file.nodes if isinstance(node, cst.Global) for name in node.names})
    if changed:
        raise refuse(f"{here}: {changed[0]} is set again while the program runs, and kept workers hold a copy of it")
    name, _, made = cached_maker(file, call)
    spelled, needed = imports.reach(file, "contextlib", "nullcontext")
    start, end = file.span(call)
    own = file.raw[file.span(call.func)[1] : end].decode("utf-8")
    splices = (*dict.fromkeys((*needed, *made)), Splice(file.path, start, end, f"{spelled}({name}{own})"))
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "kept"),)


def _is_pool(file: PythonFile, call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute):
        full = file.full_name(call.func) or ""
        return full.split(".")[-1] in POOLS and full.startswith(MODULES)
    of = call.func.value
    full = file.full_name(of.func if isinstance(of, cst.Call) else of) or ""
    return call.func.attr.value in POOLS and full.startswith(MODULES)


def _name_of(file: PythonFile, item: cst.WithItem) -> str | None:
    return dotted(item.asname.name) if item.asname is not None else None  # type: ignore[arg-type]


def _ends(call: cst.CSTNode, pool: str | None) -> bool:
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and dotted(call.func.value) == pool
        and call.func.attr.value in ENDS
    )
