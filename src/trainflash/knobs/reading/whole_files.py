"""Files that a function reads whole: which file, and the largest expressions that it alone decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import UNKNOWN, given_to, is_name, literal, passed
from trainflash.knobs.reading.python_source import (
    PythonFile,
    clauses,
    descendants,
    dotted,
    has_splat,
    keyword,
    parameter,
    positional,
    string_value,
)

OPENS = ("open", "io.open", "gzip.open", "bz2.open", "lzma.open")  # give a handle
ARCHIVE = "numpy.load"  # gives an array, or a handle of several
LOADS = (
    ARCHIVE, "numpy.loadtxt", "numpy.genfromtxt", "torch.load", "pandas.read_csv", "pandas.read_parquet", "pandas.read_pickle",
    "pandas.read_json", "pandas.read_table", "joblib.load",
)  # fmt: skip
METHODS = {"open": False, "read_text": True, "read_bytes": True}  # of a path; whether they give what the file holds
PARSES = (
    "json.load", "json.loads", "pickle.load", "pickle.loads", "yaml.safe_load", "yaml.full_load", "yaml.load", "tomllib.load",
    "tomllib.loads", "csv.reader", "csv.DictReader", "list", "dict", "tuple", "set", "sorted", "numpy.array", "numpy.asarray",
    "numpy.frombuffer", "torch.tensor", "torch.as_tensor", "torch.from_numpy", "zlib.decompress", "gzip.decompress", "enumerate", "zip",
    *LOADS,
)  # fmt: skip
OF_TEXT = ("read", "readlines", "split", "splitlines", "strip", "decode", "rstrip", "astype", "copy", "to_dict", "tolist")
NUMBERS = ("int", "float", "str", "len", "bool")
LAZY = (*OPENS, "csv.reader", "csv.DictReader", "enumerate", "zip", "map", "filter")


@dataclass(frozen=True)
class Reading:
    """One file read: `part` is the largest expression that depends on the file alone, `block` the `with` that opens it."""

    file: PythonFile
    call: cst.Call
    path: cst.BaseExpression
    part: cst.BaseExpression
    block: cst.With | None = None


def readings(project: Project, file: PythonFile) -> Iterator[tuple[cst.Call, Reading]]:
    """Those of all functions of a file, with the call that reads or opens."""
    for call in file.calls:
        path = _path_of(file, call)
        if path is None or file.function_around(call) is None:
            continue
        item = file.parent(call)
        if isinstance(item, cst.WithItem):
            block = file.parent(item)
            part = _of_block(project, file, item, block) if isinstance(block, cst.With) else None
            if part is not None:
                yield call, Reading(file, call, path, part, block)  # type: ignore[arg-type]
        elif (whole := _whole(project, file, call, "")) is not None:
            yield call, Reading(file, call, path, whole)


def _path_of(file: PythonFile, call: cst.Call) -> cst.BaseExpression | None:
    """The path of what a call opens for reading, or reads; None where it does neither, or gets more than is understood."""
    full = file.full_name(call.func) or ""
    first = positional(call, 0)
    if any(arg is not first and not _fixed(file, arg.value) for arg in call.args) or keyword(call, "mmap_mode") is not None:
        return None
    if full in OPENS or full in LOADS:
        if first is None or has_splat(call, "*") or has_splat(call, "**"):
            return None
        path = first.value
        inner = isinstance(path, cst.Call) and _path_of(file, path) is not None  # the file is that of what is inside
        return None if inner or (full in OPENS and not for_reading(call, 1)) else path
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in METHODS and full.split(".")[0] not in file.imported:
        return call.func.value if call.func.attr.value != "open" or for_reading(call, 0) else None
    return None


def for_reading(call: cst.Call, index: int) -> bool:
    """Whether a call that opens does so to read; `index` is the place of its mode."""
    given = keyword(call, "mode") or positional(call, index)
    return given is None or string_value(given.value) in ("r", "rb", "rt")


def _of_block(project: Project, file: PythonFile, item: cst.WithItem, block: cst.With) -> cst.BaseExpression | None:
    """The reading of `with open(path) as f:`, where the block does nothing else with `f`, and does that once."""
    named = item.asname.name if item.asname is not None else None
    function = file.function_around(block)
    if len(block.items) != 1 or not isinstance(named, cst.Name) or function is None or block.asynchronous is not None:
        return None
    uses = [each for each in descendants(function.body, cst.Name) if each.value == named.value and each is not named]  # type: ignore[attr-defined]
    if len(uses) != 1 or not isinstance(block.body, cst.IndentedBlock) or not file.inside(uses[0], block.body):
        return None  # a second reading goes on where the first one ended
    whole = _whole(project, file, uses[0], named.value)  # type: ignore[arg-type]
    line = file.statement(whole) if whole is not None else None
    straight = line is not None and file.parent(line) is block.body and not _within(file, whole, line)  # type: ignore[arg-type]
    return whole if straight else None


def _within(file: PythonFile, node: cst.CSTNode, line: cst.CSTNode) -> bool:
    """Whether `node` is evaluated more than once, or not always, where its statement runs."""
    kinds = (cst.BaseComp, cst.IfExp, cst.Lambda, cst.BooleanOperation)
    return any(isinstance(up, kinds) and file.inside(up, line) for up in file.ancestors(node))


def _whole(project: Project, file: PythonFile, node: cst.BaseExpression, handle: str) -> cst.BaseExpression | None:
    """The largest expression around `node` that the file alone decides, and that gives all of it at once; None where there is none."""
    best, at = None, node
    while at is not None:
        if _gives_all(file, at, handle):
            best = at
        at = _around(project, file, at, handle)  # type: ignore[assignment]
    return best


def _around(project: Project, file: PythonFile, node: cst.BaseExpression, handle: str) -> cst.BaseExpression | None:
    """The expression next around `node`, where it only works on what `node` gives."""
    up = file.parent(node)
    if isinstance(up, cst.Arg) and isinstance(call := file.parent(up), cst.Call):
        others = [arg for arg in call.args if arg is not up]
        known = file.full_name(call.func) in PARSES and all(_fixed(file, arg.value) for arg in others)
        return call if known and not up.star else None
    if isinstance(up, cst.Attribute) and up.value is node:
        call = file.parent(up)  # type: ignore[assignment]
        called = isinstance(call, cst.Call) and call.func is up and up.attr.value in OF_TEXT
        if called and up.attr.value in ("read", "readlines") and call.args:  # type: ignore[union-attr]
            return None  # a part of it
        return call if called and all(_fixed(file, arg.value) for arg in call.args) else None
    if isinstance(up, cst.Subscript) and up.value is node and len(up.slice) == 1 and isinstance(up.slice[0].slice, cst.Index):
        key = up.slice[0].slice.value
        needed = not _gives_all(file, node, handle)
        return up if literal(key) is not UNKNOWN or (needed and _chosen(project, file, key)) else None
    if isinstance(up, cst.CompFor) and up.iter is node:
        around = next(each for each in file.ancestors(up) if isinstance(each, cst.BaseComp))
        return around if _own_names(file, around, handle) else None
    return None


def _chosen(project: Project, file: PythonFile, key: cst.BaseExpression) -> bool:
    """Whether `key` is a parameter for which every caller gives a literal, such as the name of an array."""
    function = file.function_around(key)
    param = unassigned_parameter(function, key)
    sites = callers.sites(project, file, function) if function is not None and param is not None else []
    given = [passed(where, site, file, function, param) for where, site in sites]  # type: ignore[arg-type,union-attr]
    return bool(given) and all(each is not None and literal(each) is not UNKNOWN for each in given)


def unassigned_parameter(function: cst.FunctionDef | None, node: cst.BaseExpression) -> cst.Param | None:
    """The parameter that `node` names, where the function gives it no other value."""
    named = function is not None and isinstance(node, cst.Name) and not given_to(function, node.value)
    return parameter(function, node.value) if named else None  # type: ignore[union-attr]


def _own_names(file: PythonFile, comp: cst.CSTNode, handle: str) -> bool:
    """Whether a comprehension calls nothing but what parses, and reads no name but its own."""
    bound = {each.value for clause in clauses(comp) for each in descendants(clause.target, cst.Name)}  # type: ignore[attr-defined]
    names = {each.value for each in descendants(comp, cst.Name) if is_name(file, each)} - bound - {handle}  # type: ignore[attr-defined,arg-type]
    calls = list(descendants(comp, cst.Call))
    methods = [call for call in calls if isinstance(call.func, cst.Attribute) and call.func.attr.value in OF_TEXT]  # type: ignore[attr-defined]
    known = [call for call in calls if file.full_name(call.func) in (*NUMBERS, *OPENS, *PARSES)]  # type: ignore[attr-defined]
    return all(name in file.imported or name in (*NUMBERS, *PARSES, "open") for name in names) and len(calls) == len(methods) + len(known)


def _fixed(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether an argument is a literal, or a name of an imported module such as `np.float32`."""
    name = dotted(node)
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_fixed(file, each.value) for each in node.elements)
    return literal(node) is not UNKNOWN or (name is not None and name.split(".")[0] in file.imported) or name in NUMBERS


def _gives_all(file: PythonFile, node: cst.BaseExpression, handle: str) -> bool:
    """Whether `node` is what the file holds, and no handle or iterator that gives it later."""
    if isinstance(node, cst.Call):
        full = file.full_name(node.func) or ""
        if full in LAZY or (isinstance(node.func, cst.Attribute) and METHODS.get(node.func.attr.value) is False):
            return False
        return full != ARCHIVE or not _keyed(file, node)
    if isinstance(node, cst.Subscript):
        return True
    return isinstance(node, (cst.ListComp, cst.SetComp, cst.DictComp))


def _keyed(file: PythonFile, call: cst.Call) -> bool:
    """Whether `np.load(path)` gives an archive: it is asked for an array by name, or given a name of its own."""
    up = file.parent(call)
    if isinstance(up, cst.Subscript) and up.value is call and isinstance(up.slice[0].slice, cst.Index):
        key = up.slice[0].slice.value
        return string_value(key) is not None or (literal(key) is UNKNOWN and _npz(file, call))
    return _npz(file, call) or (isinstance(up, cst.Attribute) and up.value is call and up.attr.value in ("files", "close", "keys"))


def _npz(file: PythonFile, call: cst.Call) -> bool:
    return not any(".npy" in file.text(each) for each in (call, *values_given(file, call, call.args[0].value)))


def values_given(file: PythonFile, call: cst.CSTNode, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What the function gives to a name, or the class to an attribute of `self`."""
    name, function = dotted(node), file.function_around(call)
    owner = file.class_of(function) if function is not None and (name or "").startswith("self.") else function
    return given_to(owner, name) if name is not None and owner is not None else []
