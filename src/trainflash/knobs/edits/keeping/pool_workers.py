"""What the workers of a pool run: which functions, and whether kept workers do the same as new ones."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits.keeping.kept_calls import TRAINED
from trainflash.knobs.effects import changes, purity
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import assigned, is_name, refuse, short
from trainflash.knobs.reading.python_source import ASSIGNS, LOOPS, PythonFile, descendants, dotted, keyword, targets_of, unsubscripted

RUN_BY_LOADERS = ("__getitem__", "__getitems__", "__iter__", "__next__")
UNCHANGED = (cst.BaseNumber, cst.BaseString, cst.Name, cst.Attribute, cst.UnaryOperation)  # defaults that hold nothing
FOLDERS = ("contextlib.chdir", "os.chdir", "os.chroot", "os.fchdir")
ENVIRONMENTS = ("dotenv.load_dotenv", "os.putenv", "os.unsetenv", "time.tzset")
DEFAULTS = (
    "decimal.setcontext", "locale.setlocale", "numpy.seterr", "os.umask", "socket.setdefaulttimeout", "torch.set_default_device",
    "torch.set_default_dtype", "torch.set_default_tensor_type",
)  # fmt: skip
DEFINES = (cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom)


def handed_over(project: Project, file: PythonFile, call: cst.Call, threads: bool) -> list[callees.Function]:
    """The functions of the program that `call` hands over. Raises `UsageError` where they are not known; threads may run a library's."""
    node = call.args[0].value if call.args and call.args[0].keyword is None and not call.args[0].star else None
    while isinstance(node, cst.Call) and file.full_name(node.func) == "functools.partial" and node.args:
        node = node.args[0].value
    if threads and isinstance(node, cst.Lambda):
        return [each for inner in descendants(node.body, cst.Call) for each in callees.meant(project, file, inner)]  # type: ignore[arg-type]
    if isinstance(node, cst.Name) or (isinstance(node, cst.Attribute) and node.attr.value != "train"):
        first = (dotted(node) or "").split(".")[0]
        scope = file.scope(node)
        bound = [each.node for each in (scope[first] if scope is not None and first else ()) if hasattr(each, "node")]
        handed = list(callees.meant(project, file, cst.Call(func=node)))
        if handed and (isinstance(node, cst.Attribute) or all(isinstance(each, DEFINES) for each in bound)):
            return handed
        library = first in file.imported and not callees.of_project(project, file.imported[first])
        builtin = scope is not None and bool(first) and bool(scope[first]) and not bound
        if threads and not handed and (library or builtin):
            return []
    raise refuse(f"{file.location(call)}: which function of the program the workers run is not known")


def no_forks(project: Project, makers: set[int]) -> None:
    """Raises `UsageError` where a loader's worker may use the pool: forked behind its first use, it has the pool and not the threads."""
    loaders = [call for file in project.parsed("DataLoader") for call in file.calls if callees.called_name(call) == "DataLoader"]
    given = [arg.value for call in loaders if (arg := keyword(call, "collate_fn")) is not None]
    names = {*RUN_BY_LOADERS, *((dotted(value) or "").split(".")[-1] for value in given)} if loaders else ()
    starts = [each for name in sorted(names) for each in callees.defined(project, name)]
    for where, each in callees.reached(project, starts):
        if id(each) in makers:
            raise refuse(f"{where.location(each)}: a loader's worker has a copy of the pool without its threads")


def no_state(project: Project, handed: list[callees.Function]) -> None:
    """Raises `UsageError` where a new process may know, or draw, something else than one that is kept."""
    surroundings_stay(project)
    owners = {node.name.value for file in project.parsed() for node in file.nodes if isinstance(node, (cst.ClassDef, cst.FunctionDef))}
    for file, function in callees.reached(project, handed):
        found = purity.first_draw(project, file, function, set())
        if found is not None:
            where, call = found
            raise refuse(f"{where.location(call)}: a kept worker goes on with the numbers of `{where.text(call.func)}`")
        defaults = [param.default for param in descendants(function.params, cst.Param) if param.default is not None]  # type: ignore[attr-defined]
        if purity.cached_already(file, function) or not all(isinstance(each, UNCHANGED) for each in defaults):
            raise refuse(f"{file.location(function)}: `{function.name.value}` may keep what it found in a worker")
        for node in descendants(function, (cst.Name, cst.Attribute)):
            full = file.full_name(node) or ""  # type: ignore[arg-type]
            if full.startswith(("os.environ", "os.getenv")) or full in ("globals", "setattr", "exec", "eval"):
                raise refuse(f"{file.location(node)}: a kept worker has a `{full}` of its own")
            for where, name in _variables(project, file, node):
                reason = _changing(project, where, name)
                if reason is not None:
                    raise refuse(f"{file.location(node)}: {reason}, and kept workers hold a copy of it")
            if isinstance(node, cst.Attribute) and (place := _set_on_class(project, node.attr.value, owners)) is not None:
                raise refuse(
                    f"{file.location(node)}: {node.attr.value} of a class or function is set at {place}, and kept workers hold a copy of it"
                )


def surroundings_stay(project: Project) -> None:
    """Raises `UsageError` where the program goes to another folder, changes its environment, or what a library does by default.

    A process keeps what it began with. Only what the module does first, before it calls any function of the program, is the same for all.
    """
    for file in project.parsed():
        for node in file.nodes:
            told = _surrounding(file, node)
            if told is not None and not _first(project, file, node):
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` changes {told}, which kept workers do not see")


def _surrounding(file: PythonFile, node: cst.CSTNode) -> str | None:
    """What a call or statement changes for processes that begin later; None for any other."""
    if isinstance(node, cst.Call):
        full = file.full_name(node.func) or ""
        base = file.full_name(node.func.value) if isinstance(node.func, cst.Attribute) else None
        if full in FOLDERS:
            return "the folder"
        if full in ENVIRONMENTS or (base == "os.environ" and changes.writes(callees.method_name(node))):
            return "the environment"
        return "what a library does by default" if full in DEFAULTS else None
    for target in targets_of(node) if isinstance(node, (*ASSIGNS, cst.Del)) else ():
        if file.full_name(unsubscripted(target)) == "os.environ":
            return "the environment"
    return None


def _first(project: Project, file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether the module does it once, in front of all else that it runs of the program."""
    if file.function_around(node) is not None or any(True for _ in file.loops_around(node)):
        return False
    start = file.span(node)[0]
    ahead = [each for each in file.calls if file.span(each)[0] < start and file.function_around(each) is None]
    return not any(True for each in ahead for _ in callees.meant(project, file, each))


def _variables(project: Project, file: PythonFile, node: cst.CSTNode) -> Iterator[tuple[PythonFile, str]]:
    """The variables of modules that a name, or an attribute of an imported module of the program, may mean."""
    if isinstance(node, cst.Attribute):
        first = file.imported.get((dotted(node.value) or "").split(".")[0])
        if first is not None and callees.of_project(project, first):
            yield from ((where, node.attr.value) for where in project.parsed(node.attr.value) if _bound_in(where, node.attr.value))
        return
    if not isinstance(node, cst.Name) or not is_name(file, node):
        return
    scope = file.scope(node)
    found = list(scope[node.value]) if scope is not None else []
    bound = [each for each in found if hasattr(each, "node")]
    if any(each.scope is not file.scope(file.module) for each in bound) or (found and not bound):
        return  # the function's own, or Python's
    if bound and not all(isinstance(each.node, (cst.Import, cst.ImportFrom)) for each in bound):
        yield from [(file, node.value)] if _bound_in(file, node.value) else []
        return
    name = file.imported.get(node.value, node.value)
    if not bound or callees.of_project(project, name):
        tail = name.rpartition(".")[2]
        yield from ((where, tail) for where in project.parsed(tail) if _bound_in(where, tail))


def _bound_in(file: PythonFile, name: str) -> list[cst.CSTNode]:
    """Where the module's own variable `name` is set, its functions, classes and imports left out."""
    scope = file.scope(file.module)
    found = [each.node for each in (scope[name] if scope is not None else ()) if hasattr(each, "node")]
    return [node for node in found if not isinstance(node, DEFINES)]


def _changing(project: Project, file: PythonFile, name: str) -> str | None:
    """Why the module's variable `name` may be another thing later; None where it is set once, to what nobody changes."""
    bound = _bound_in(file, name)
    again = len(bound) != 1 or any(isinstance(up, (*LOOPS, cst.FunctionDef)) for up in file.ancestors(bound[0]))
    if again or any(dotted(call.func) in ("globals", "exec") for call in file.calls) or _set_from_outside(project, name):
        return f"{name} is set again while the program runs"
    if changes.changed(project, file, file.module, {name}) is not None:
        return f"{name} is changed while the program runs"
    value = assigned(file, bound[0])
    if value is None or not all(_makes_plain(project, file, call) for call in descendants(value, cst.Call)):  # type: ignore[arg-type]
        return f"{name} may be changed while the program runs"
    return None


def _makes_plain(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether a call makes something by a function of Python or a library, and nothing that is trained."""
    full = file.full_name(call.func) or ""
    builtin = isinstance(call.func, cst.Name) and hasattr(builtins, full) and not callees.defined(project, full)
    return not full.startswith(TRAINED) and (builtin or callees.of_library(project, file, call))


def _set_from_outside(project: Project, name: str) -> bool:
    """Whether an attribute `name` of an imported module is assigned to somewhere."""
    return any(dotted(place.value) in where.imported for where, place in _attributes_set(project, name))


def _set_on_class(project: Project, name: str, owners: set[str]) -> str | None:
    """Where the attribute `name` of a class or function, one of `owners`, is set or changed by that name."""
    for where, place in _attributes_set(project, name):
        base = dotted(place.value)
        if base is None or base == "cls" or base.split(".")[-1] in {*owners, "__class__"}:
            return str(where.location(place))
    for where in project.parsed("setattr"):
        for call in where.calls:
            target = dotted(call.args[0].value) if dotted(call.func) == "setattr" and call.args else None
            if target is not None and (target == "cls" or target.split(".")[-1] in owners):
                return str(where.location(call))
    return None


def _attributes_set(project: Project, name: str) -> Iterator[tuple[PythonFile, cst.Attribute]]:
    """Attributes `name` that are assigned to or changed by a method, or of which a part is."""
    for where in project.parsed(name):
        for node in where.nodes:
            targets = targets_of(node) if isinstance(node, (*ASSIGNS, cst.NamedExpr)) else []
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and changes.writes(node.func.attr.value):
                targets.append(node.func.value)
            for target in map(unsubscripted, targets):
                if isinstance(target, cst.Attribute) and target.attr.value == name:
                    yield where, target
