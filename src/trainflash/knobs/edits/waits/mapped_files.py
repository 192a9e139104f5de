"""An array's file that is read whole for a part of it: mapped into memory, `np.load(path, mmap_mode="c")`, so that only the part is read.

The mapping is copy-on-write: the array can be changed like one that was read, and the file stays as it is.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.which_call import near
from trainflash.knobs.kinds import MappedFile
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, is_name, refuse
from trainflash.knobs.reading.file_paths import needs_path
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, positional, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

LOAD, FROM_FILE = "numpy.load", "numpy.fromfile"
SHAPED = ("reshape", "view", "transpose")  # give the same memory in another shape
ONE_BYTE = ("numpy.uint8", "numpy.int8", "numpy.bool_", "uint8", "int8", "u1", "i1", "|u1", "|i1", "bool", "B", "b")
MODE = "mmap_mode"
BINDS = (cst.FunctionDef, cst.ImportAlias, cst.AsName, cst.Param)
WRITES = (cst.AssignTarget, cst.AugAssign, cst.Del)
DEEPEST = 2  # functions that hand the array on


def mapped_file(edit: MappedFile, scene: Scene) -> tuple[Target, ...]:
    """The reading at the finding's line, or else the only one of its function. Raises `UsageError` where all of the file is used."""
    file, call = near(scene.project, *scene.source("reads"), _readings, "array is read from a file")
    here = file.location(call)
    if not _in_part(scene.project, file, call):
        raise refuse(f"{here}: what `{file.text(call)}` gives is not known to be used in part")
    _of_a_path(scene.project, file, call)
    splices = _load(file, call) if file.full_name(call.func) == LOAD else _from_file(file, call)
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "mapped"),)


def _readings(file: PythonFile) -> list[tuple[cst.Call, tuple[PythonFile, cst.Call]]]:
    return [(call, (file, call)) for call in file.calls if file.full_name(call.func) in (LOAD, FROM_FILE)]


def _in_part(project: Project, file: PythonFile, call: cst.Call, deep: int = 0) -> bool:
    """Whether only parts are taken of the array: at once, through the one name that it is given, or by all who call its function."""
    whole = _reshaped(file, call)
    up, function = file.parent(whole), file.function_around(call)
    if _picked(file, call) or function is None:
        return function is not None
    if isinstance(up, cst.Return):
        return _returned(project, file, function, deep)
    if not isinstance(up, cst.Assign) or len(up.targets) != 1:
        return False
    name = dotted(up.targets[0].target)
    reads = [node for node in descendants(function.body, cst.Name) if node.value == name and is_name(file, node)]
    asked = [node for node in reads if node is not up.targets[0].target and not _measured(file, node)]
    given = [node for node in asked if isinstance(file.parent(node), cst.Return)]
    if not asked or not all(_picked(file, node) for node in asked if node not in given):
        return False
    return not given or _returned(project, file, function, deep)


def _returned(project: Project, file: PythonFile, function: cst.FunctionDef, deep: int) -> bool:
    """Whether all who call `function` take only parts of what it returns."""
    name, calls = function.name.value, []
    says = _says_method if file.class_of(function) is not None else _says_function
    for other in project.parsed(name):
        for node in (each for each in other.nodes if says(other, each, name)):
            call = other.parent(node)
            if not isinstance(call, cst.Call) or call.func is not node:
                return False  # the function itself is handed on
            calls.append((other, call))
    return deep < DEEPEST and bool(calls) and all(_in_part(project, other, call, deep + 1) for other, call in calls)


def _says_method(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == name


def _says_function(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    """Whether `node` names the module's function, alone or as `module.name`, and no variable of the function around it."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == name and dotted(node.value) in file.imported
    if not isinstance(node, cst.Name) or node.value != name or not is_name(file, node) or isinstance(file.parent(node), BINDS):
        return False
    around = file.function_around(node)
    return around is None or not given_to(around, name)


def _reshaped(file: PythonFile, node: cst.CSTNode) -> cst.CSTNode:
    """`node`, or what `.reshape(…)` and the like make of it."""
    up = file.parent(node)
    outer = file.parent(up) if isinstance(up, cst.Attribute) and up.attr.value in SHAPED else None
    return _reshaped(file, outer) if isinstance(outer, cst.Call) and outer.func is up else node


def _picked(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` is picked from by an index or a slice that leaves something out, and not written to."""
    whole = _reshaped(file, node)
    up = file.parent(whole)
    if not isinstance(up, cst.Subscript) or up.value is not whole or isinstance(file.parent(up), WRITES):
        return False
    return not all(_all(each.slice) for each in up.slice)


def _all(part: cst.BaseSlice) -> bool:
    """Whether a part of an index leaves nothing out; the key of an archive's array is none either."""
    if isinstance(part, cst.Index):
        return isinstance(part.value, cst.Ellipsis) or string_value(part.value) is not None or dotted(part.value) == "None"
    return isinstance(part, cst.Slice) and part.lower is None and part.upper is None


def _measured(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether only the size of `node` is asked for."""
    up = file.parent(node)
    of = file.parent(up) if isinstance(up, cst.Arg) else None
    return (isinstance(up, cst.Attribute) and up.attr.value in ("shape", "size", "ndim", "dtype")) or (
        isinstance(of, cst.Call) and dotted(of.func) == "len"
    )


def _of_a_path(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where an open file may be read on: a mapping begins at the file's beginning."""
    given = positional(call, 0) or keyword(call, "file")
    if given is None:
        raise refuse(f"{file.location(call)}: `{file.text(call)}` is given no file")
    needs_path(project, file, given.value)


def _load(file: PythonFile, call: cst.Call) -> tuple[Splice, ...]:
    here, given = file.location(call), keyword(call, MODE)
    if has_splat(call, "*") or has_splat(call, "**") or positional(call, 1) is not None:
        raise refuse(f"{here}: the arguments of `{file.text(call)}` are not all written out by name")
    pickled = keyword(call, "allow_pickle")
    if pickled is not None and dotted(pickled.value) != "False":
        raise refuse(f"{here}: an array of Python's objects cannot be mapped")
    if given is not None and dotted(given.value) != "None":
        raise refuse(f"{here}: `{file.text(call)}` has its {MODE} already")
    if given is not None:
        return (Splice(file.path, *file.span(given.value), '"c"'),)
    last = file.outer_span(call.args[-1].value)[1]
    return (Splice(file.path, last, last, f', {MODE}="c"'),)


def _from_file(file: PythonFile, call: cst.Call) -> tuple[Splice, ...]:
    """`np.memmap(path, dtype, "c", …)`: without a type both read the file in other ways, and a count is another argument.

    A rest that is no whole number is left out, as `np.fromfile` does: the shape says so, where a number has more than one byte.
    """
    here = file.location(call)
    path, kind = positional(call, 0), positional(call, 1) or keyword(call, "dtype")
    if path is None or kind is None or len(call.args) != 2 or has_splat(call, "**"):
        raise refuse(f"{here}: `{file.text(call)}` is given more, or less, than a file and a type")
    spelled, needed = imports.reach(file, "numpy", "memmap")
    named, typed = file.text(path.value), file.text(kind.value)
    if (string_value(kind.value) or file.full_name(kind.value)) in ONE_BYTE:
        return (*needed, Splice(file.path, *file.span(call), f'{spelled}({named}, {typed}, "c")'))
    if any(True for _ in descendants(call, cst.NamedExpr)):
        raise refuse(f"{here}: `{file.text(call)}` gives a name its value on the way")
    paths, first = imports.reach(file, "os", "path")
    of, second = imports.reach(file, "numpy", "dtype")
    whole = f"{paths}.getsize({named}) // {of}({typed}).itemsize"
    return (
        *dict.fromkeys((*needed, *first, *second)),
        Splice(file.path, *file.span(call), f'{spelled}({named}, {typed}, "c", shape={whole})'),
    )
