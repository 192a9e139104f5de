"""Who may change an object that a name holds, and which functions a function reaches: read from the source, in favour of a change."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import purity, uses
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, string_value

METHODS = purity.CHANGES | {"fill", "sort", "resize", "put", "reverse", "shuffle", "push", "requires_grad_"}
WRITES = {
    "print",
    "save",
    "dump",
    "savetxt",
    "savefig",
    "to_csv",
    "write_text",
    "write_bytes",
    "makedirs",
    "mkdir",
    "info",
    "warning",
    "error",
}
SHUFFLES = ("random.shuffle", "numpy.random.shuffle", "heapq.heappush", "heapq.heappop")
WHOLE = {
    "eq",
    "ne",
    "gt",
    "lt",
    "ge",
    "le",
    "argmax",
    "argmin",
    "long",
    "int",
    "count_nonzero",
    "numel",
    "nonzero",
    "logical_and",
    "logical_or",
}
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


def changed(project: Project, file: PythonFile, where: cst.CSTNode, names: set[str]) -> cst.CSTNode | None:
    """The first place in `where` that changes what one of `names` holds, or hands it to a function of the project that does."""
    for node in descendants(where, (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Del, cst.Call)):
        if isinstance(node, cst.Call):
            if _by_call(project, file, node, names, set()):
                return node
            continue
        targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]
        for target in targets:
            inner = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
            for each in (target, *(element.value for element in inner)):
                if (isinstance(node, cst.AugAssign) or not isinstance(each, cst.Name)) and root(each) in names:
                    return node
    return None


def lasting(project: Project, file: PythonFile, function: cst.FunctionDef) -> str | None:
    """Why calling `function` once is not calling it often: it changes or writes something, reads what changes, or its result is changed."""
    local = {node.target.value for node in descendants(function.body, cst.AssignTarget) if isinstance(node.target, cst.Name)}
    local |= {node.target.value for node in descendants(function.body, (cst.For, cst.CompFor)) if isinstance(node.target, cst.Name)}
    outside = {node.value for node in descendants(function.body, cst.Name)} - local
    node = changed(project, file, function.body, outside)
    if node is not None:
        return f"it changes what it is given, or what others read (`{file.text(node)}` at {file.location(node)})"
    for call in descendants(function.body, cst.Call):
        tail = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func) or ""
        modes = [string_value(arg.value) or "" for arg in call.args[1:]] if tail == "open" else []
        if tail in WRITES or any(set(mode) & set("wax+") for mode in modes):
            return f"it writes (`{file.text(call.func)}` at {file.location(call)})"
    shared = {name for name in outside if any(_assigns(line, name) for line in file.module.body)}
    for statement in _after(file, function):
        node = changed(project, file, statement, shared)
        if node is not None:
            return f"it reads what is changed at {file.location(node)}"
    return _result_changed(project, file, function)


def _after(file: PythonFile, function: cst.FunctionDef) -> list[cst.CSTNode]:
    """The module without what it runs in front of the function's definition, when nobody can have called it yet."""
    own = next((number for number, each in enumerate(file.module.body) if each is function or file.inside(function, each)), 0)
    return [each for number, each in enumerate(file.module.body) if number >= own or isinstance(each, (cst.FunctionDef, cst.ClassDef))]


def _assigns(line: cst.CSTNode, name: str) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and any(
        dotted(target.target) == name for node in descendants(line, cst.Assign) for target in node.targets
    )


def _result_changed(project: Project, file: PythonFile, function: cst.FunctionDef) -> str | None:
    for where, call in uses.callers(project, file, function):
        up = where.parent(call)
        if isinstance(up, cst.Attribute) and writes(up.attr.value) and isinstance(where.parent(up), cst.Call):
            return f"its result is changed at {where.location(up)}"
        around = next((each for each in where.ancestors(call) if isinstance(each, (cst.FunctionDef, cst.Module))), where.module)
        targets = [each.target for each in up.targets] if isinstance(up, cst.Assign) else []
        names = {each.value for target in targets for each in descendants(target, cst.Name) if isinstance(target, (cst.Name, cst.Tuple))}
        node = changed(project, where, around, names)
        if node is not None:
            return f"its result is changed at {where.location(node)}"
    return None


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


def _by_call(project: Project, file: PythonFile, call: cst.Call, names: set[str], seen: set[int]) -> bool:
    full = file.full_name(call.func) or ""
    if isinstance(call.func, cst.Attribute) and root(call.func.value) in names and writes(call.func.attr.value):
        return True
    out = keyword(call, "out")
    if out is not None and root(out.value) in names:
        return True
    handed = [(number, arg) for number, arg in enumerate(call.args) if isinstance(arg.value, cst.Name) and arg.value.value in names]
    if handed and full in SHUFFLES:
        return True
    for where, function in purity.meant(project, file, call) if handed else ():
        if id(function) in seen:
            continue
        seen.add(id(function))
        params = [param.name.value for param in function.params.params if param.name.value != "self"]
        taken = {arg.keyword.value if arg.keyword else params[number] for number, arg in handed if arg.keyword or number < len(params)}
        if changed(project, where, function.body, taken) is not None:
            return True
    return False


def writes(method: str) -> bool:
    """Whether a method changes the object that it is called on, by its name."""
    return method in METHODS or method.startswith("set_") or (method.endswith("_") and not method.startswith("__"))


def reached(project: Project, file: PythonFile, function: cst.FunctionDef) -> Iterator[tuple[PythonFile, cst.FunctionDef]]:
    """`function` and those of the project that it calls by name, however deep; networks are called without a name, so all forwards."""
    todo = [(file, function)]
    todo += [(where, each) for where in project.parsed("def forward") for each in where.functions if each.name.value == "forward"]
    seen: set[int] = set()
    while todo:
        where, each = todo.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield where, each
        for call in descendants(each, cst.Call):
            todo += purity.meant(project, where, call)


def bound_name(file: PythonFile, call: cst.CSTNode) -> str | None:
    """The name or attribute that is assigned what `call` returns."""
    up = file.parent(call)
    if isinstance(up, cst.Assign) and len(up.targets) == 1:
        return dotted(up.targets[0].target)
    return None


def views(file: PythonFile, loop: cst.CSTNode, name: str) -> set[str]:
    """Names that are assigned a part or a view of what `name` holds."""
    found: set[str] = set()
    for node in descendants(loop, cst.Assign):
        value = node.value.func if isinstance(node.value, cst.Call) else node.value
        if root(value) == name:
            found |= {target.target.value for target in node.targets if isinstance(target.target, cst.Name)}
    return found


def whole_numbers(file: PythonFile, loop: cst.CSTNode, value: cst.BaseExpression, name: str) -> bool:
    """Whether a tensor may hold whole numbers: it counts, compares or finds places, itself or where its name is assigned in the loop."""
    made = [each.value for each in descendants(loop, cst.Assign) for target in each.targets if dotted(target.target) == dotted(value)]
    for each in (value, *(made if isinstance(value, cst.Name) else ())):
        if any(
            isinstance(node, cst.Attribute) and node.attr.value in ("mean", "std", "float", "double")
            for node in descendants(each, cst.Attribute)
        ):
            continue
        if any(True for _ in descendants(each, cst.Comparison)):
            return True
        if any(isinstance(call.func, cst.Attribute) and call.func.attr.value in WHOLE for call in descendants(each, cst.Call)):
            return True
    words = {*name.lower().split("_"), *(file.text(value).lower().split("_") if isinstance(value, cst.Name) else ())}
    return bool(words & {"correct", "correctly", "hits", "count", "counts", "right", "seen", "tokens", "num", "matches", "errors"})
