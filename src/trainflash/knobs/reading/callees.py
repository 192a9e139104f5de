"""Which functions of the program a call may mean, by its name, and which ones a function reaches: in doubt too many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted
from trainflash.knobs.remembered import listed, remembered

Function = tuple[PythonFile, cst.FunctionDef]
CONSTRUCTORS = ("__init__", "__post_init__")


@listed
def meant(project: Project, file: PythonFile, call: cst.Call) -> Iterator[Function]:
    """Functions of the program that `call` may mean; of a class its `__init__`. An attribute of a library is none of them."""
    if not switches_mode(file, call):
        yield from behind(project, file, call.func)


def behind(project: Project, file: PythonFile, function: cst.BaseExpression) -> Iterator[Function]:
    """The same for what stands where it is not called, such as the first argument of `map`."""
    name = function.attr.value if isinstance(function, cst.Attribute) else dotted(function)
    if not name:
        return
    full = file.import_of(function)
    if full is not None:
        if not of_project(project, full):
            return
        plain = isinstance(function, cst.Name)
        found = defined(project, full.rpartition(".")[2] if plain else name)
        yield from (each for each in found if not plain or not _method(*each))
    elif isinstance(function, cst.Name):
        everywhere = [each for each in defined(project, name) if not _method(*each)]
        here = [each for each in everywhere if each[0] is file]
        yield from here or (everywhere if _star(file) else ())
    elif not isinstance(function.value, (cst.SimpleString, cst.FormattedString)):  # type: ignore[attr-defined]
        methods = _methods(project, name)
        yield from _inherited(file, function, methods) if _super(function) else _own(file, function, methods) or methods


def own_method(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether `call` is `self.f()` of a method that the class around it has, or one derived from it."""
    return isinstance(call.func, cst.Attribute) and bool(_own(file, call.func, _methods(project, call.func.attr.value)))


def called_name(call: cst.Call) -> str:
    """The last name of what is called; empty for anything but names and attributes."""
    return method_name(call) or dotted(call.func) or ""


def method_name(call: cst.Call) -> str:
    """The last name of a method that is called; empty for what is called by a plain name."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


@remembered
def of_project(project: Project, full: str) -> bool:
    """Whether an imported dotted name is a module of the program's, or something in one."""
    parts = full.split(".")
    prefixes = [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    return full.startswith(".") or any(project.has_module(prefix) for prefix in prefixes)


def of_library(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether what is called was imported from outside the program, by itself or as an attribute of a module."""
    full = file.import_of(call.func)
    return full is not None and not of_project(project, full)


def switches_mode(file: PythonFile, call: cst.Call) -> bool:
    """Whether `x.train()` belongs to an `x.eval()` in the same function: a network's switch, and no training."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "train":
        return False
    around = [up for up in file.ancestors(call) if isinstance(up, (cst.FunctionDef, cst.Module))]
    base = file.text(call.func.value)
    others = (other.func for other in descendants(around[0], cst.Call))
    return any(isinstance(other, cst.Attribute) and other.attr.value == "eval" and file.text(other.value) == base for other in others)


@listed
def defined(project: Project, name: str) -> Iterator[Function]:
    """Functions and methods of that name in the program, and what makes objects of a class of that name."""
    yield from project.functions(name)
    for where in project.defining(name):
        for each in where.functions:
            owner = where.class_of(each) if each.name.value in CONSTRUCTORS else None
            if owner is not None and owner.name.value == name:
                yield where, each


def reached(project: Project, starts: Iterable[Function]) -> Iterator[Function]:
    """The functions `starts` and those of the program that they call, however deep."""
    todo, seen = list(starts), set()
    while todo:
        where, each = todo.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield where, each
        todo += _called(project, where, each)


@listed
def _called(project: Project, file: PythonFile, function: cst.FunctionDef) -> Iterator[Function]:
    for call in descendants(function, cst.Call):
        yield from meant(project, file, call)


def forwards(project: Project) -> list[Function]:
    """What networks run: they are called without a name."""
    return list(defined(project, "forward"))


def _methods(project: Project, name: str) -> list[Function]:
    return [each for each in defined(project, name) if each[0].class_of(each[1]) is not None]


def _method(file: PythonFile, function: cst.FunctionDef) -> bool:
    return file.class_of(function) is not None and function.name.value not in CONSTRUCTORS


def _own(file: PythonFile, function: cst.BaseExpression, methods: list[Function]) -> list[Function]:
    """For `self.f()` the class's own method and those of classes derived from it by name; empty where it has none."""
    if dotted(function.value) not in ("self", "cls"):  # type: ignore[attr-defined]
        return []
    owner = file.class_around(function)
    classes = [(each, each[0].class_of(each[1])) for each in methods]
    if owner is None or all(known is not owner for _, known in classes):
        return []
    return [each for each, known in classes if known is owner or _derived(known, owner.name.value)]


def _super(function: cst.BaseExpression) -> bool:
    base = function.value  # type: ignore[attr-defined]
    return isinstance(base, cst.Call) and dotted(base.func) == "super"


def _inherited(file: PythonFile, function: cst.BaseExpression, methods: list[Function]) -> list[Function]:
    """For `super().f()` the methods of the class's bases, by their names."""
    owner = file.class_around(function)
    bases = base_names(owner)
    return [each for each in methods if (known := each[0].class_of(each[1])) is not None and known.name.value in bases]


def _derived(owner: cst.ClassDef | None, name: str) -> bool:
    return name in base_names(owner)


def _star(file: PythonFile) -> bool:
    return any(isinstance(node.names, cst.ImportStar) for node in file.each(cst.ImportFrom))
