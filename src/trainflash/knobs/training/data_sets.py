"""The classes of a program that make samples, what a sample runs of them, and where others read their fields."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import given, givers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import given_to, passed
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted, keyword, methods_of
from trainflash.knobs.training import worker_copies

HANDED = ("collate_fn", "data_collator", "transform", "transforms", "target_transform")
OPTIONS = ("parse_args", "parse_known_args")
WALKS = {"parameters", "named_parameters", "buffers", "modules", "param_groups"}
DEEPEST = 3  # own: functions that hand on what they were handed

Owner = tuple[PythonFile, cst.ClassDef]


def classes(project: Project, *, samplers: bool = False) -> Iterator[Owner]:
    """Classes whose objects live in workers: data sets, and what is handed over as their transform or collate function.

    With `samplers` those, too, that say which samples come next: they stay in the main process, and are asked ahead of time. Of data sets
    only those count that the recorded run made loaders of, where these are known.
    """
    handed = [
        file.text(arg.value)
        for file in project.parsed()
        for call in file.calls
        for name in HANDED
        if (arg := keyword(call, name)) is not None
    ]
    for file in project.parsed("class "):
        for owner in file.each(cst.ClassDef):
            methods = {each.name.value for each in methods_of(owner)}
            bases = [(dotted(base.value) or "").split(".")[-1] for base in owner.bases]
            sampler = any(name.endswith("Sampler") for name in (*bases, owner.name.value))
            data_set = any(base.endswith(("Dataset", "DataPipe")) for base in bases)
            iterable = "__iter__" in methods and data_set
            called = "__call__" in methods and any(owner.name.value in text for text in handed)
            makes = bool(methods & {"__getitem__", "__getitems__"}) or iterable or called
            if data_set and project.loaded is not None:
                makes = makes and (file.path, owner.name.value) in project.loaded
            if (samplers and "__iter__" in methods) if sampler else makes:
                yield file, owner


def starts(project: Project) -> Iterator[Function]:
    """What workers call: methods of data sets, and functions."""
    for file, owner in classes(project):
        yield from ((file, each) for each in methods_of(owner) if each.name.value in worker_copies.SAMPLES)
    yield from functions(project)


def functions(project: Project) -> Iterator[Function]:
    """The functions that are handed over to make a batch or to change a sample."""
    for file in project.parsed():
        for call in file.calls:
            for name in HANDED:
                arg = keyword(call, name)
                called = (dotted(arg.value) or "").split(".")[-1] if arg is not None else ""
                yield from callees.defined(project, called) if called else ()


def family(project: Project, owner: cst.ClassDef) -> Iterator[Owner]:
    """The class, its bases and what is derived from it, by their names."""
    for file in project.parsed("class "):
        for each in file.each(cst.ClassDef):
            if each is owner or each.name.value in base_names(owner) or owner.name.value in base_names(each):
                yield file, each


def sampled(project: Project, file: PythonFile, owner: cst.ClassDef) -> list[Function]:
    """The methods of the class, its bases and those derived from it that making a sample runs."""
    return reached(project, owner, [(file, each) for each in methods_of(owner) if each.name.value in worker_copies.SAMPLES])


def reached(project: Project, owner: cst.ClassDef, begins: list[Function]) -> list[Function]:
    """The methods `begins` and those of the same object that they call, as methods or as properties."""
    known: dict[str, list[Function]] = {}
    for file, each in family(project, owner):
        for method in methods_of(each):
            known.setdefault(method.name.value, []).append((file, method))
    todo, found = list(begins), []
    while todo:
        file, method = todo.pop()
        if any(method is each for _, each in found):
            continue
        found.append((file, method))
        for node in descendants(method.body, cst.Attribute):
            if dotted(node.value) == "self" or _super(node.value):  # type: ignore[attr-defined]
                todo += known.get(node.attr.value, [])  # type: ignore[attr-defined]
    return found


def _super(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and dotted(node.func) == "super"


def readings(project: Project, owner: Owner, field: str) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """Where the field may be read, of an object of the class or of one of its family, or of one that nobody knows."""
    own = {each.name.value for _, each in family(project, owner[1])}
    for file in project.parsed(field):
        for node in file.nodes:
            if not isinstance(node, cst.Attribute) or node.attr.value != field or given.stored(file, node):
                continue
            if isinstance(up := file.parent(node), cst.Attribute) and up.attr is node:
                continue
            base = dotted(node.value)
            around = file.class_around(node)
            if base in ("self", "cls"):
                if around is not None and around.name.value in own:
                    yield file, node
            elif base is None or not is_other(project, file, node, base, own):
                yield file, node


def is_other(project: Project, file: PythonFile, at: cst.CSTNode, name: str, own: set[str], depth: int = 0) -> bool:
    """Whether what the dotted `name` holds at `at` shows that it is no object of the classes `own`."""
    root, _, field = name.partition(".")
    if file.import_of(at, root) is not None:
        return True
    if root in ("self", "cls") and field:
        around = file.class_around(at)
        made = given_to(around, name) if around is not None and "." not in field else []
        return bool(made) and all(_of_others(project, file, each, own, depth) for each in made)
    if field:
        return "dataset" not in field and is_other(project, file, at, root, own, depth)
    function = file.function_around(at)
    for loop in file.loops_around(at):
        if isinstance(loop, cst.For) and root in given.unpacked(loop.target):
            return any(each.attr.value in WALKS for each in descendants(loop.iter, cst.Attribute))  # type: ignore[attr-defined]
    made = given_to(function.body, root) if function is not None else []
    if made:
        return all(_of_others(project, file, each, own, depth) for each in made)
    param = (
        next((each for each in descendants(function.params, cst.Param) if each.name.value == root), None) if function is not None else None
    )  # type: ignore[attr-defined]
    if param is not None:
        calls = givers.makers(project, file, function) if depth < DEEPEST else []  # type: ignore[arg-type]
        handed = [(where, call, passed(where, call, file, function, param)) for where, call in calls]  # type: ignore[arg-type]
        return bool(handed) and all(each is not None and _of_others(project, where, each, own, depth + 1) for where, _, each in handed)
    made = given_to(file.module, root)
    return bool(made) and all(_of_others(project, file, each, own, depth) for each in made)


def _of_others(project: Project, file: PythonFile, value: cst.BaseExpression, own: set[str], depth: int) -> bool:
    if isinstance(value, cst.Call):
        name = callees.called_name(value)
        if name in own:
            return False
        if name in OPTIONS or callees.of_library(project, file, value):
            return name.endswith("Loader") or not (file.full_name(value.func) or "").startswith("torch.utils.data")
        made = any(node.name.value == name for where in project.parsed(f"class {name}") for node in where.each(cst.ClassDef))
        return made and isinstance(value.func, cst.Name)
    given_name = dotted(value)
    if given_name is not None:
        return depth < DEEPEST and is_other(project, file, value, given_name, own, depth + 1)
    return not isinstance(value, (cst.Subscript, cst.IfExp, cst.BooleanOperation, cst.Await))
