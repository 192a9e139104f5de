"""A pool of workers that is started for each batch: one that is kept, `with contextlib.nullcontext(_pool(2)) as pool:` and the like.

The end of a pool waits for its work, and new processes know what the program knows when they start. So the work must be waited for by
those who hand it over, and processes must do what needs nothing but its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from trainflash.knobs.edits.keeping import pool_workers
from trainflash.knobs.edits.keeping.kept_calls import cached_maker
from trainflash.knobs.edits.keeping.opened import Opened, opened
from trainflash.knobs.kinds import KeptPool
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted
from trainflash.knobs.scene import Scene, Target

THREADS = ("ThreadPool", "ThreadPoolExecutor")
POOLS = {"Pool", "ProcessPoolExecutor", *THREADS}
MODULES = ("multiprocessing", "concurrent", "torch.multiprocessing")
ENDS = frozenset(("close", "terminate", "join", "shutdown"))
STATE = ("initializer", "initargs")
SAME = ("mp_context", "thread_name_prefix")  # arguments that are the same each time
COUNTS = ("os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count")
TAKES = ("list", "tuple", "sorted", "sum", "dict", "set", "max", "min")  # all that an iterator gives
PASSES = ("enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "concurrent.futures.as_completed")
LEAVES = (cst.Break, cst.Return, cst.Raise, cst.Yield)


def kept_pool(edit: KeptPool, scene: Scene) -> tuple[Target, ...]:
    """The one pool that a function starts and ends. Raises `UsageError` where its workers may have to be new ones, or its end waits."""
    project = scene.project
    found = [each for file in project.parsed() for each in (*opened(file, _opens(file), ENDS), *_handed_out(project, file))]
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} pool of workers is started and ended in a function of the program")
    pool = found[0]
    file, call = pool.file, pool.call
    _number_only(file, call)
    kind = call.func.attr.value if isinstance(call.func, cst.Attribute) else (file.full_name(call.func) or "").split(".")[-1]
    blocks = pool.blocks or (pool,)
    work = [(block.file, each) for block in blocks for each in _work(block, kind.endswith("Executor"))]
    handed = [each for where, one in work for each in pool_workers.handed_over(project, where, one, kind in THREADS)]
    makers = {id(where.function_around(each)) for where, each in [(file, call), *work]}
    for where, each in callees.reached(project, handed):
        if id(each) in makers:
            raise refuse(f"{where.location(each)}: `{each.name.value}` may wait in a worker of the pool for the pool itself")
    if kind in THREADS:
        pool_workers.no_forks(project, makers)
    else:
        pool_workers.no_state(project, handed)
    name, _, made = cached_maker(file, call)
    own = file.raw[file.span(call.func)[1] : file.span(call)[1]].decode("utf-8")
    splices = tuple(dict.fromkeys((*pool.kept(f"{name}{own}"), *made)))
    here = file.location(call)
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "kept"),)


def _opens(file: PythonFile) -> Callable[[cst.Call], bool]:
    return lambda call: _is_pool(file, call)


def _handed_out(project: Project, file: PythonFile) -> Iterator[Opened]:
    """Pools that a function returns to callers who all use it by `with … as NAME`."""
    for call in file.calls:
        function = file.function_around(call)
        if function is None or not isinstance(file.parent(call), cst.Return) or not _is_pool(file, call):
            continue
        sites = callers.sites(project, file, function)
        blocks = [
            Opened(where, site, up.asname.name.value, site)
            for where, site in sites
            if isinstance(up := where.parent(site), cst.WithItem) and up.asname is not None and isinstance(up.asname.name, cst.Name)
        ]
        if sites and len(blocks) == len(sites):
            yield Opened(file, call, "", call, blocks=tuple(blocks))


def _is_pool(file: PythonFile, call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute):
        full = file.full_name(call.func) or ""
        return full.split(".")[-1] in POOLS and full.startswith(MODULES)
    of = call.func.value
    full = file.full_name(of.func if isinstance(of, cst.Call) else of) or ""
    return call.func.attr.value in POOLS and full.startswith(MODULES)


def _number_only(file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the pool is given more than the number of its workers, or one that is computed each time."""
    here = file.location(call)
    others = [arg for arg in call.args if arg.keyword is None or arg.keyword.value not in SAME]
    if any(arg.star for arg in call.args) or len(others) > 1 or any(arg.keyword and arg.keyword.value in STATE for arg in call.args):
        raise refuse(f"{here}: workers are given more than their number, which may be another thing each time")
    for arg in others:
        for each in descendants(arg.value, (cst.Call, cst.Subscript, cst.BaseComp, cst.NamedExpr)):
            if not isinstance(each, cst.Call) or file.full_name(each.func) not in COUNTS:
                raise refuse(f"{here}: the number of workers, `{file.text(arg)}`, may be another one each time")


# The work is waited for -----------------------------------------------------------------------------------------------------------


def _work(block: Opened, executor: bool) -> list[cst.Call]:
    """The calls that hand work to the pool. Raises `UsageError` where nobody but the end of the pool waits for it."""
    file, work = block.file, []
    for node in block.uses():
        up = file.parent(node)
        call = file.parent(up) if isinstance(up, cst.Attribute) and up.value is node else None
        if not isinstance(call, cst.Call) or call.func is not up:
            raise refuse(f"{file.location(node)}: what `{node.value}` is used for is not known")
        if up.attr.value in ENDS:  # type: ignore[union-attr]
            raise refuse(f"{file.location(node)}: `{file.text(call)}` ends the pool")
        at_once = file.function_around(node) is file.function_around(block.call) and not _inside_lambda(file, node)
        if not at_once or not _waits(file, call, up.attr.value, executor):  # type: ignore[union-attr]
            raise refuse(f"{file.location(node)}: only the end of the pool waits for the work that `{file.text(call.func)}` begins")
        work.append(call)
    if not work:
        raise refuse(f"{file.location(block.call)}: the pool is given no work where it is started")
    return work


def _inside_lambda(file: PythonFile, node: cst.CSTNode) -> bool:
    return any(isinstance(up, cst.Lambda) for up in file.ancestors(node))


def _waits(file: PythonFile, call: cst.Call, method: str, executor: bool) -> bool:
    """Whether the work that `call` hands over is done before the function goes on, or at least asked for in the function."""
    if executor:
        return (method == "map" and _consumed(file, call)) or (method == "submit" and _asked_for(file, call))
    return method in ("map", "starmap") or (method in ("imap", "imap_unordered") and _consumed(file, call))


def _consumed(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether all that the iterator `node` gives is taken where it stands."""
    up = file.parent(node)
    if isinstance(up, cst.CompFor) and up.iter is node:
        made = next(each for each in file.ancestors(up) if isinstance(each, cst.BaseComp))
        return not isinstance(made, cst.GeneratorExp) or _consumed(file, made)
    if isinstance(up, cst.For) and up.iter is node:
        return not any(True for _ in descendants(up.body, LEAVES))
    outer = _handed_to(file, node)
    full = file.full_name(outer.func) if outer is not None else None
    return full in TAKES or (full in PASSES and _consumed(file, outer))  # type: ignore[arg-type]


def _handed_to(file: PythonFile, node: cst.BaseExpression) -> cst.Call | None:
    """The call whose first argument `node` is."""
    up = file.parent(node)
    outer = file.parent(up) if isinstance(up, cst.Arg) and up.keyword is None and not up.star else None
    return outer if isinstance(outer, cst.Call) and outer.args[0] is up else None


def _asked_for(file: PythonFile, call: cst.Call) -> bool:
    """Whether the function asks for the result of `call`: at once, or for those of all in the list that it puts them into."""
    up = file.parent(call)
    if isinstance(up, cst.Attribute):
        return up.attr.value == "result" and isinstance(file.parent(up), cst.Call)
    name = _listed(file, call)
    function = file.function_around(call)
    if name is None or function is None:
        return False
    names = [node for node in descendants(function.body, cst.Name) if node.value == name and is_name(file, node)]  # type: ignore[attr-defined,arg-type]
    asked = [node for node in names if _asks(file, call, node)]  # type: ignore[arg-type]
    return bool(asked) and all(node in asked or _grows(file, node) for node in names)  # type: ignore[arg-type]


def _listed(file: PythonFile, call: cst.Call) -> str | None:
    """The list that gets what `call` returns: `found = [call for …]` or `found.append(call)`."""
    up = file.parent(call)
    made = file.parent(up) if isinstance(up, cst.ListComp) and up.elt is call else None
    if isinstance(made, cst.Assign) and len(made.targets) == 1:
        return dotted(made.targets[0].target)
    outer = _handed_to(file, call)
    grown = outer.func if outer is not None and isinstance(file.parent(outer), cst.Expr) else None
    return dotted(grown.value) if isinstance(grown, cst.Attribute) and grown.attr.value == "append" else None


def _grows(file: PythonFile, node: cst.Name) -> bool:
    """Whether a use of the list makes it, adds to it or counts it."""
    up = file.parent(node)
    if isinstance(up, cst.AssignTarget):
        value = file.parent(up).value  # type: ignore[union-attr]
        return isinstance(value, cst.ListComp) or (isinstance(value, cst.List) and not value.elements)
    if isinstance(up, cst.Attribute):
        return up.attr.value == "append"
    outer = _handed_to(file, node)
    return outer is not None and dotted(outer.func) == "len"


def _asks(file: PythonFile, call: cst.Call, node: cst.Name) -> bool:
    """Whether a pass over the list `node`, always made behind `call`, asks for the result of each."""
    at: cst.BaseExpression = node
    while (outer := _handed_to(file, at)) is not None and file.full_name(outer.func) in PASSES:
        at = outer
    up = file.parent(at)
    if isinstance(up, cst.CompFor) and up.iter is at and not up.ifs and up.inner_for_in is None and isinstance(up.target, cst.Name):
        made = file.parent(up)
        whole = isinstance(made, (cst.ListComp, cst.SetComp)) or (isinstance(made, cst.GeneratorExp) and _consumed(file, made))
        return whole and clauses(made) == [up] and _result_of(file, made.elt, up.target.value) and _follows(file, call, at)  # type: ignore[union-attr,arg-type]
    if isinstance(up, cst.For) and up.iter is at and isinstance(up.target, cst.Name):
        plain = [line for line in up.body.body if isinstance(line, cst.SimpleStatementLine)]
        whole = not any(True for _ in descendants(up.body, (*LEAVES, cst.Continue)))
        return whole and any(_result_of(file, line, up.target.value) for line in plain) and _follows(file, call, at)
    return False


def _result_of(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    """Whether `node` always asks for `name.result()`."""
    for call in descendants(node, cst.Call):
        choices = (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp)
        around = [up for up in file.ancestors(call) if file.inside(up, node)]
        if dotted(call.func) == f"{name}.result" and not call.args and not any(isinstance(up, choices) for up in around):  # type: ignore[attr-defined]
            return True
    return False


def _follows(file: PythonFile, call: cst.Call, node: cst.CSTNode) -> bool:
    """Whether `node` is always reached behind `call`: its block holds both, and nothing between them leaves it."""
    line = next(up for up in file.ancestors(node) if isinstance(file.parent(up), (cst.IndentedBlock, cst.Module)))
    start, end = file.span(call)[1], file.span(line)[0]
    left = [each for each in descendants(file.parent(line), (*LEAVES, cst.Continue)) if start < file.span(each)[0] < end]  # type: ignore[arg-type]
    return start < end and not left and file.inside(call, file.parent(line))  # type: ignore[arg-type]
