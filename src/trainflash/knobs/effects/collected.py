"""Who counts on it that garbage is collected when the program says so, and who is told how much was found."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, is_name, literal, passed, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, methods_of, parameter, string_value

COLLECT = "gc.collect"
NEEDS = (  # of `gc`: without automatic collections the program's own are the only ones, and others tell what is left
    *("gc.disable", "gc.freeze", "gc.callbacks", "gc.garbage", "gc.get_objects", "gc.get_referrers", "gc.get_stats", "gc.get_count"),
)
THRESHOLD = "gc.set_threshold"
OPENS = {"gzip.open", "h5py.File", "open", "socket.socket", "sqlite3.connect", "subprocess.Popen", "tarfile.open", "zipfile.ZipFile"}
LOGS = ("debug", "info", "warning", "log", "write", "add_scalar", "set_postfix")


def nobody_needs_collections(project: Project) -> None:
    """Raises `UsageError` where automatic collections are off, or something shows whether objects that hold each other are gone."""
    for file in project.parsed("gc"):
        for node in file.nodes:
            full = file.full_name(node) if isinstance(node, (cst.Attribute, cst.Name)) else None
            if full in NEEDS and not isinstance(file.parent(node), cst.ImportAlias):
                raise refuse(f"{file.location(node)}: `{file.text(node)}` counts on the collections that the program makes itself")
            call = file.parent(node)
            if full == THRESHOLD and isinstance(call, cst.Call) and call.func is node and not _positive(file, call):
                raise refuse(f"{file.location(call)}: `{file.text(call)}` may leave all collections to the program itself")
    for file in project.parsed("weakref"):
        node = next((each for each in file.each((cst.Import, cst.ImportFrom)) if "weakref" in file.text(each)), None)
        if node is not None:
            raise refuse(f"{file.location(node)}: weak references show when objects are collected")
    for file, function in project.functions("__del__"):
        raise refuse(f"{file.location(function)}: what runs when an object is collected would run at another time")


def frees_no_handles(project: Project) -> None:
    """Raises `UsageError` where objects hold something open and themselves: only a collection closes it, and there are few of them then.

    An object holds itself where one of its fields is given it, or a method of its own that is not called.
    """
    for file in project.parsed("class "):
        for owner in file.each(cst.ClassDef):
            given = [
                node
                for node in descendants(owner, cst.Assign)
                if any((dotted(each.target) or "").startswith("self.") for each in node.targets)
            ]  # type: ignore[attr-defined]
            opens = next(
                (node for node in given if any(file.full_name(call.func) in OPENS for call in descendants(node.value, cst.Call))), None
            )  # type: ignore[attr-defined]
            methods = {f"self.{each.name.value}" for each in methods_of(owner)}
            itself = next((node for node in given if opens is not None and _holds_itself(file, node.value, methods)), None)  # type: ignore[attr-defined]
            if opens is not None and itself is not None:
                told = f"`{file.text(itself)}` makes the object hold itself, and what `{file.text(opens)}` opens"
                raise refuse(f"{file.location(itself)}: {told} stays open until garbage is collected")


def _holds_itself(file: PythonFile, value: cst.BaseExpression, methods: set[str]) -> bool:
    for node in descendants(value, (cst.Name, cst.Attribute)):
        up = file.parent(node)
        called = isinstance(up, cst.Call) and up.func is node
        part = isinstance(up, cst.Attribute) and up.value is node
        if (dotted(node) in methods and not called) or (dotted(node) == "self" and not part):
            return True
    return False


def _positive(file: PythonFile, call: cst.Call) -> bool:
    """Whether the first threshold is known not to be 0, which switches automatic collections off."""
    first = call.args[0].value if call.args and not call.args[0].star else None
    values = given_to(file.module, first.value) if isinstance(first, cst.Name) else [] if first is None else [first]
    return bool(values) and all(isinstance(literal(each), int) and literal(each) > 0 for each in values)


def only_shown(project: Project, file: PythonFile, target: cst.BaseExpression) -> bool:
    """Whether what is kept under a key of a dictionary, `x["key"]`, is read by nobody but what prints or logs it."""
    index = target.slice[0].slice if isinstance(target, cst.Subscript) and len(target.slice) == 1 else None
    key = string_value(index.value) if isinstance(index, cst.Index) else None
    held = dotted(target.value) if isinstance(target, cst.Subscript) else None
    if key is None or held is None:
        return False
    own = next(up for up in file.ancestors(target) if isinstance(up, (cst.Assign, cst.AugAssign)))
    for where in project.parsed(key):
        for node in where.nodes:
            says = isinstance(node, cst.SimpleString) and string_value(node) == key
            if says and not where.inside(node, own) and not _shown(project, where, node) and not _stored(where, node):
                return False
    names = {held.rpartition(".")[2], *_handed_as(project, file, target, held)}
    return not any(_whole(project, where, node) for name in names for where in project.parsed(name) for node in _mentions(where, name))


def _handed_as(project: Project, file: PythonFile, target: cst.BaseExpression, held: str) -> Iterator[str]:
    """What callers of the function around call the dictionary that they hand to it."""
    function = file.function_around(target)
    param = parameter(function, held)
    for where, call in callers.sites(project, file, function) if function is not None and param is not None else ():
        given = passed(where, call, file, function, param)
        yield (dotted(given) or "").rpartition(".")[2] or held


def _mentions(file: PythonFile, name: str) -> Iterator[cst.BaseExpression]:
    """Where a variable or an attribute of that name stands, as a whole."""
    for node in file.nodes:
        if isinstance(node, cst.Name) and node.value == name:
            up = file.parent(node)
            if is_name(file, node):
                yield node
            elif isinstance(up, cst.Attribute):
                yield up


def _whole(project: Project, file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether all that a dictionary holds may be read here, and more is done with it than to show it."""
    up = file.parent(node)
    if isinstance(up, cst.Subscript) and up.value is node:
        index = up.slice[0].slice
        return not (isinstance(index, cst.Index) and string_value(index.value) is not None) and not _shown(project, file, node)
    if isinstance(up, cst.Attribute) and up.value is node:
        call = file.parent(up)
        return not (isinstance(call, cst.Call) and up.attr.value in ("get", "setdefault", "clear") and call.func is up)
    if isinstance(up, (cst.AssignTarget, cst.Param, cst.ImportAlias, cst.Del)):
        return False
    call = file.parent(up) if isinstance(up, cst.Arg) else None
    to_program = isinstance(call, cst.Call) and any(True for _ in callees.meant(project, file, call))
    return not to_program and not _shown(project, file, node)


def _shown(project: Project, file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` is only a part of what a statement prints or logs."""
    for up in file.ancestors(node):
        if isinstance(up, cst.Call) and isinstance(file.parent(up), cst.Expr):
            logs = callees.method_name(up) in LOGS and not any(True for _ in callees.meant(project, file, up))
            return logs or file.full_name(up.func) == "print"
        if isinstance(up, (cst.BaseStatement, cst.BaseSmallStatement, cst.IfExp, cst.Comparison, cst.NamedExpr, cst.Lambda)):
            return False
    return False


def _stored(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether the text is the key of a dictionary as it is made, or of what is set."""
    up = file.parent(node)
    subscript = next((each for each in file.ancestors(node) if isinstance(each, cst.Subscript)), None)
    return isinstance(up, cst.DictElement) or (subscript is not None and isinstance(file.parent(subscript), cst.AssignTarget))
