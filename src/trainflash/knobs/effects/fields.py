"""What the fields of an object hold, and which lines of the program may change it: by their names, in doubt one does."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import harmless, sharing, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, own_classes
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import (
    ASSIGNS,
    PythonFile,
    descendants,
    dotted,
    targets_of,
)
from trainflash.schema import Location

ASKS = {
    "len",
    "sum",
    "min",
    "max",
    "sorted",
    "list",
    "tuple",
    "float",
    "int",
    "str",
    "print",
    "isinstance",
    "any",
    "all",
    "enumerate",
    "zip",
}
MODULES = ("torch", "numpy", "math", "statistics", "sklearn.metrics", "scipy")
HOLDERS = ("list", "dict", "set", "tuple", "float", "int", "bool", "str", "range", "deque", "defaultdict", "Counter")
SHARING = {"asarray", "as_tensor", "from_numpy", "frombuffer", "memmap"}  # of the memory of what they are given
KEPT = (cst.Assign, cst.AnnAssign, cst.Return, cst.Yield, cst.Element, cst.DictElement, cst.NamedExpr)  # by another name


def changes(project: Project, owner: cst.ClassDef, names: set[str]) -> Iterator[tuple[PythonFile, cst.Attribute]]:
    """Where an attribute by one of `names` is set, may be changed in place, or gets another name; what unrelated classes do with their own
    attributes of that name is left out."""
    kin = own_classes.kin(project, owner)
    for where in project.parsed():
        for node in where.nodes:
            if not isinstance(node, cst.Attribute) or node.attr.value not in names or not _changes(project, where, node):
                continue
            around = where.class_around(node)
            if dotted(node.value) != "self" or around is None or around.name.value in kin:
                yield where, node


def made_within(project: Project, file: PythonFile, owner: cst.ClassDef, name: str) -> bool:
    """Whether a field holds what the object itself made, and what nobody changes who does not name it: numbers, lists, arrays, objects of
    the program's own that hold nothing else. A network is trained by whoever has its parameters."""
    made = given_to(owner, f"self.{name}")
    if not made:
        return False  # a class that it is derived from makes it
    return _number(file, owner, name) or all(_new(project, file, value) for value in made)


def _new(project: Project, file: PythonFile, value: cst.BaseExpression) -> bool:
    names = {each.value for each in descendants(value, cst.Name)} - {"True", "False", "None", "self"}  # type: ignore[attr-defined]
    if not isinstance(value, cst.Call):
        return not names - set(HOLDERS) and not any(True for _ in descendants(value, cst.Attribute))
    full = file.full_name(value.func) or ""
    if full.split(".")[-1] in SHARING or full.startswith(("torch.nn", "torch.optim")):
        return False
    if full in HOLDERS or full.split(".")[0] in ("numpy", "torch", "collections"):
        return True
    known = own_classes.class_of(project, (file, value), any_class=True)
    handed = {each.value for arg in value.args for each in descendants(arg, cst.Name) if arg.keyword is not each}  # type: ignore[attr-defined]
    return known is not None and own_classes.class_of(project, (file, value)) is None and not handed


def also_defined(project: Project, owner: cst.ClassDef, names: set[str]) -> Location | None:
    """Where a class that it is derived from, or one derived from it, has a method by one of `names`; None where none has."""
    kin = own_classes.kin(project, owner)
    for name in sorted(names):
        for where, function in project.functions(name):
            other = where.class_of(function)
            if other is not None and other is not owner and other.name.value in kin:
                return where.location(function)
    return None


def _number(file: PythonFile, owner: cst.ClassDef, name: str) -> bool:
    """Whether all that the class does with a field is reckoning, comparing, or asking for a part by it."""
    for node in descendants(owner, cst.Attribute):
        if dotted(node) != f"self.{name}" or isinstance(file.parent(node), cst.AssignTarget):
            continue
        up = file.parent(node)
        if isinstance(up, cst.UnaryOperation):
            up = file.parent(up)
        if not isinstance(up, (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.Index, cst.Slice, cst.BooleanOperation)):
            return False
    return True


def _changes(project: Project, file: PythonFile, node: cst.Attribute) -> bool:
    """Whether the line of `node` sets it, changes what it holds, hands it to what may do so, or gives it another name."""
    top: cst.CSTNode = node
    up = file.parent(node)
    while isinstance(up, (cst.Attribute, cst.Subscript)) and up.value is top:
        top, up = up, file.parent(up)
    if isinstance(up, cst.Call) and up.func is top:
        method = top.attr.value if isinstance(top, cst.Attribute) and top is not node else ""
        return not method or not harmless.method(up)
    line = next((each for each in file.ancestors(node) if isinstance(each, (*ASSIGNS, cst.Del, cst.For, cst.AsName))), None)
    if line is not None and any(each is top for whole in targets_of(line) for each in sharing.elements(whole)):
        return True
    if isinstance(up, cst.Arg) and isinstance(call := file.parent(up), cst.Call):
        return not _only_looks(project, file, call, up)
    return top is node and isinstance(up, KEPT)


def _only_looks(project: Project, file: PythonFile, call: cst.Call, arg: cst.Arg) -> bool:
    full = file.full_name(call.func) or ""
    if full in ASKS:
        return True
    known = callees.of_library(project, file, call) and full.startswith(MODULES) and full not in ("torch.save",)
    return known and not writers.writes_into(project, file, call, [list(call.args).index(arg)]) and "optim" not in full
