"""What an expression may be a part or a view of that lives on, and may be changed later: nothing where it is new each time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from trainflash.knobs.effects import changes, sharing, unseen
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, parameter_names

ITEMS = ("__getitem__", "__iter__", "__next__")  # what a class of the program's gives whoever takes its items
Place = tuple[PythonFile, cst.CSTNode]
OF_ITEMS = sharing.BUILTIN | {"list", "tuple", "sorted"}


@dataclass(frozen=True)
class Kept:
    """A variable or an attribute, `name`, which the source of `where` names in `around`."""

    file: PythonFile
    around: cst.CSTNode
    name: str


def changed_later(project: Project, file: PythonFile, loop: cst.For | cst.While, part: cst.BaseExpression) -> Place | None:
    """Where a turn of the loop may change what `part` was in a turn before; None where that cannot be."""
    names = {each.value for each in descendants(part, cst.Name)}  # type: ignore[attr-defined]
    if (change := changes.changed(project, file, loop.body, names)) is not None:
        return file, change
    kept = list(_Search(project).parts(file, loop, part))
    if not kept:
        return None
    names |= {each.name for each in kept if each.file is file}
    change = changes.changed(project, file, loop.body, names) or unseen.changing(project, file, loop.body, names)
    if change is not None:
        return file, change
    for each in kept:
        for function in () if each.around is loop else _functions(each):
            inside = each.file is file and file.inside(loop, function)
            change = None if inside else changes.changed(project, each.file, function.body, {each.name})
            if change is not None:
                return each.file, change
    return None


def _functions(kept: Kept) -> Iterator[cst.FunctionDef]:
    """What may change it in a turn of the loop: all functions there, but none that only makes an object."""
    for function in descendants(kept.around, cst.FunctionDef):
        if function.name.value not in callees.CONSTRUCTORS:  # type: ignore[attr-defined]
            yield function  # type: ignore[misc]


@dataclass
class _Search:
    project: Project
    seen: set[tuple[int, int]] = field(default_factory=set)

    def parts(self, file: PythonFile, around: cst.CSTNode, node: cst.BaseExpression) -> Iterator[Kept]:
        """What `node` may be a part of; `around` is the loop or the function in which its names get their values."""
        if (id(around), id(node)) in self.seen:
            return
        self.seen.add((id(around), id(node)))
        if isinstance(node, cst.Call):
            yield from self._call(file, around, node)
        elif isinstance(node, cst.Name):
            yield from self._name(file, around, node)
        elif isinstance(node, cst.Attribute):
            if node.attr.value not in sharing.FACTS:
                yield from self._attribute(file, around, node)
        elif isinstance(node, cst.Subscript):
            yield from self._item(file, around, node.value)
        else:
            for each in _inner(node):
                yield from self.parts(file, around, each)

    def _name(self, file: PythonFile, around: cst.CSTNode, node: cst.Name) -> Iterator[Kept]:
        values, rows = list(_values(around, node.value)), list(_rows(around, node.value))
        if not values and not rows:
            yield Kept(file, _home(file, around), node.value)
        for each in values:
            yield from self.parts(file, around, each)
        for each in rows:
            yield from self._item(file, around, each)

    def _attribute(self, file: PythonFile, around: cst.CSTNode, node: cst.Attribute) -> Iterator[Kept]:
        root = changes.root(node)
        if root and (any(_values(around, root)) or any(_rows(around, root))):
            yield from self.parts(file, around, node.value)
        elif root in ("self", "cls"):
            yield Kept(file, file.class_around(around) or file.class_around(node) or file.module, file.text(node))
        else:
            yield Kept(file, _home(file, around), file.text(node))

    def _item(self, file: PythonFile, around: cst.CSTNode, whole: cst.BaseExpression) -> Iterator[Kept]:
        kept = list(self.parts(file, around, whole))
        yield from kept
        if kept:
            for name in ITEMS:
                for where, function in callees.defined(self.project, name):
                    yield from self._returned(where, function, (), None)

    def _call(self, file: PythonFile, around: cst.CSTNode, call: cst.Call) -> Iterator[Kept]:
        name = callees.called_name(call)
        base = call.func.value if isinstance(call.func, cst.Attribute) else None
        library = callees.of_library(self.project, file, call)
        given = [each.value for each in call.args] + ([base] if base is not None and not library else [])
        found = list(callees.meant(self.project, file, call))
        unknown = not found and not library and base is None and name not in OF_ITEMS and not file.imported.get(name)
        found += callees.forwards(self.project) if unknown else []
        for where, function in found:
            if function.name.value not in callees.CONSTRUCTORS:
                yield from self._returned(where, function, given, (file, around))
        if found or unknown:
            return
        if name in unseen.UPDATES and base is not None and not library:
            yield Kept(file, _home(file, around), file.text(base))
        elif name in sharing.PASSES or name in OF_ITEMS or (name.endswith("_") and not name.endswith("__")):
            of = given if base is None or library else [base]
            for each in of:
                yield from self.parts(file, around, each)

    def _returned(
        self, file: PythonFile, function: cst.FunctionDef, given: Sequence[cst.BaseExpression], caller: Place | None
    ) -> Iterator[Kept]:
        """What a function of the program's returns or hands out; for its parameters, whatever it was given."""
        params = parameter_names(function) - {"self", "cls"}
        for out in descendants(function.body, (cst.Return, cst.Yield)):
            value = out.value  # type: ignore[attr-defined]
            for each in self.parts(file, function, value) if isinstance(value, cst.BaseExpression) else ():
                if each.file is not file or re.split(r"\W", each.name)[0] not in params:
                    yield each
                elif caller is not None:
                    for argument in given:
                        yield from self.parts(*caller, argument)


def _home(file: PythonFile, around: cst.CSTNode) -> cst.CSTNode:
    """Where a name lives that `around` gives no value: in the loop itself it is looked at by the loop."""
    return around if isinstance(around, (cst.For, cst.While)) else file.module


def _values(around: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """What `around` gives a name, also where that is one of several results."""
    yield from given_to(around, name)
    for node in descendants(around, (cst.Assign, cst.NamedExpr)):
        targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]  # type: ignore[attr-defined]
        written = isinstance(node.value, (cst.Tuple, cst.List))  # type: ignore[attr-defined]
        for target in targets:
            unpacked = isinstance(target, (cst.Tuple, cst.List)) and not written
            if (unpacked or isinstance(node, cst.NamedExpr)) and any(dotted(each) == name for each in sharing.elements(target)):
                yield node.value  # type: ignore[attr-defined]


def _rows(around: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """What loops in `around`, and it itself, go over with that name."""
    for loop in descendants(around, (cst.For, cst.CompFor)):
        if any(dotted(each) == name for each in sharing.elements(loop.target)):  # type: ignore[attr-defined]
            yield loop.iter  # type: ignore[attr-defined]


def _inner(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, cst.BooleanOperation):
        return [node.left, node.right]
    if isinstance(node, (cst.Tuple, cst.List)):
        return [each.value for each in node.elements]
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return [node.elt]
    return [node.expression] if isinstance(node, cst.Await) else [node.value] if isinstance(node, cst.NamedExpr) else []
