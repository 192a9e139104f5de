"""Who may change an object that is held, by whatever name: read from the source, in doubt somebody does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from trainflash.knobs.effects import purity, sharing, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, string_value, targets_of
from trainflash.schema import Location

METHODS = purity.CHANGES | {"fill", "sort", "resize", "put", "reverse", "shuffle", "push", "requires_grad_"}
METHODS |= {"paste", "putalpha", "putdata", "putpalette", "putpixel", "thumbnail"}  # of an image of Pillow's
SHUFFLES = ("random.shuffle", "numpy.random.shuffle", "heapq.heappush", "heapq.heappop")
READS = {
    "print",
    "len",
    "str",
    "repr",
    "range",
    "int",
    "float",
    "min",
    "max",
    "sum",
    "sorted",
    "list",
    "tuple",
    "enumerate",
    "zip",
    "isinstance",
}
MODULES = ("torch", "numpy", "math", "logging", "tqdm")


def changed(
    project: Project, file: PythonFile, where: cst.CSTNode, names: set[str], *, but: Sequence[cst.CSTNode] = ()
) -> cst.CSTNode | None:
    """The first place in `where` that changes what one of `names` holds, or hands it to what does; `but` are places that do not count."""
    return _changed(where, sharing.Shared(project, file, names), but)


def _changed(where: cst.CSTNode, held: sharing.Shared, but: Sequence[cst.CSTNode] = ()) -> cst.CSTNode | None:
    shared = held.within(where)
    for node in descendants(where, (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Del, cst.Call)):
        if any(node is each for each in but):
            continue
        if isinstance(node, cst.Call):
            if by_call(node, shared):
                return node
            continue
        for target in targets_of(node):
            inner = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
            for each in (target, *(element.value for element in inner)):
                if _written(node, each, shared):
                    return node
    return None


def _written(node: cst.CSTNode, target: cst.BaseExpression, shared: sharing.Shared) -> bool:
    """Whether an assignment to `target` changes what is held, and gives no name anew."""
    if isinstance(node, cst.AugAssign) and (shared.holds(target) or root(target) in shared.names):
        return True
    part = isinstance(target, (cst.Attribute, cst.Subscript))
    return part and (root(target) in shared.names or shared.holds(target.value))  # type: ignore[attr-defined]


def lasting(project: Project, file: PythonFile, function: cst.FunctionDef) -> str | None:
    """Why calling `function` once is not calling it often: it changes or writes something, reads what changes, or its result is changed."""
    binding = (cst.AssignTarget, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor)
    bound = [node.target for node in descendants(function.body, binding)]
    local = {name.value for target in bound for name in sharing.elements(target) if isinstance(name, cst.Name)}
    outside = {node.value for node in descendants(function.body, cst.Name)} - local - {"True", "False", "None"}
    node = changed(project, file, function.body, outside, but=[assign for _, assign in purity.own_slots(project, file, function)])
    if node is not None:
        return f"it changes what it is given, or what others read (`{file.text(node)}` at {file.location(node)})"
    for call in descendants(function.body, cst.Call):
        tail = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func) or ""
        modes = [string_value(arg.value) or "" for arg in call.args[1:]] if tail == "open" else []
        if tail in writers.REPORTS or any(set(mode) & set("wax+") for mode in modes):
            return f"it writes (`{file.text(call.func)}` at {file.location(call)})"
    shared = {name for name in outside if any(_assigns(line, name) for line in file.module.body)}
    for statement in _after(file, function):
        node = changed(project, file, statement, shared)
        if node is not None:
            return f"it reads what is changed at {file.location(node)}"
    at = result_changed(project, callers.results(project, file, function))
    return None if at is None else f"its result is changed at {at}"


def _after(file: PythonFile, function: cst.FunctionDef) -> list[cst.CSTNode]:
    """The module without what it runs in front of the function's definition, when nobody can have called it yet."""
    own = next((number for number, each in enumerate(file.module.body) if each is function or file.inside(function, each)), 0)
    return [each for number, each in enumerate(file.module.body) if number >= own or isinstance(each, (cst.FunctionDef, cst.ClassDef))]


def _assigns(line: cst.CSTNode, name: str) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and any(
        dotted(target.target) == name for node in descendants(line, cst.Assign) for target in node.targets
    )


def result_changed(project: Project, calls: Iterable[tuple[PythonFile, cst.BaseExpression]]) -> Location | None:
    """Where what `calls` give is changed, by those who call or by those that they pass it on to; None where nowhere."""
    todo, seen = list(calls), set()
    while todo:
        where, call = todo.pop(0)
        around = next((each for each in where.ancestors(call) if isinstance(each, (cst.FunctionDef, cst.Module))), where.module)
        held = sharing.Shared(project, where, set(), frozenset({id(call)}))
        node = _changed(around, held)
        if node is not None:
            return where.location(node)
        if isinstance(around, cst.FunctionDef) and id(around) not in seen and _passed_on(around, held):
            seen.add(id(around))
            todo += callers.sites(project, where, around)
    return None


def _passed_on(function: cst.FunctionDef, held: sharing.Shared) -> bool:
    inner = held.within(function.body)
    return any(
        node.value is not None and (inner.holds(node.value) or inner.wraps(node.value)) for node in descendants(function.body, cst.Return)
    )


def root(node: cst.BaseExpression) -> str:
    """The name in front of `x.a[i].b`; empty where there is none."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def given(file: PythonFile, call: cst.Call, names: set[str]) -> bool:
    """Whether a call of anything but a reading function of Python or a library is handed one of `names`, or is a method of it."""
    full = file.full_name(call.func) or ""
    if isinstance(call.func, cst.Attribute) and root(call.func) in names:
        return call.func.attr.value not in ("size", "dim", "numel", "keys", "values", "items", "get", "index", "count")
    if full in READS or full.split(".")[0] in MODULES:
        return False
    return any(root(arg.value) in names for arg in call.args)


def by_call(call: cst.Call, shared: sharing.Shared) -> bool:
    """Whether `call` changes what is held: as its method, through a function that it hands it to, or by writing into it."""
    base = call.func.value if isinstance(call.func, cst.Attribute) and not _of_library(shared.file, call.func) else None
    if base is not None and writes(call.func.attr.value) and (shared.holds(base) or root(base) in shared.names):  # type: ignore[union-attr]
        return True
    out = keyword(call, "out")
    if out is not None and shared.holds(out.value):
        return True
    handed = shared.handed(call)
    if handed and writers.writes_into(shared.project, shared.file, call, handed):
        return True
    if not handed and (base is None or not shared.holds(base)):
        return False
    found = list(callees.meant(shared.project, shared.file, call))
    return any(_changes_taken(where, function, names, shared) for where, function, names in shared.taken(call, found))


def _of_library(file: PythonFile, function: cst.BaseExpression) -> bool:
    """Whether a function of numpy's, torch's or the like is called, such as `np.append`, and no method of an object."""
    return root(function) in file.imported and (file.full_name(function) or "").split(".")[0] in MODULES


def _changes_taken(file: PythonFile, function: cst.FunctionDef, names: frozenset[str], shared: sharing.Shared) -> bool:
    """Whether `function` changes what it is handed as `names`."""
    key = (id(function), names)
    if key not in shared.seen:
        shared.seen[key] = False  # while it is looked into: it may call itself
        shared.seen[key] = _changed(function.body, sharing.Shared(shared.project, file, set(names), seen=shared.seen)) is not None
    return shared.seen[key]


def writes(method: str) -> bool:
    """Whether a method changes the object that it is called on, by its name."""
    return method in METHODS or method.startswith("set_") or (method.endswith("_") and not method.startswith("__"))
