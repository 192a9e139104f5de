"""What copies of a data set in kept workers go on with: what a sample changes in them, and what they were handed before it changed."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import changes, given, givers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import is_name, refuse, short
from trainflash.knobs.reading.python_source import (
    PythonFile,
    descendants,
    dotted,
    methods_of,
    sole,
    string_value,
    targets_of,
    unsubscripted,
)

SAMPLES = ("__getitem__", "__getitems__", "__call__", "__iter__", "__next__")
TAKES = {"next", "read", "readline", "readlines", "pop", "popleft", "popitem"}
OF_TORCH = ("TensorDataset", "Subset", "ConcatDataset", "ChainDataset", "StackDataset")  # of torch.utils.data

Owner = tuple[PythonFile, cst.ClassDef]


def counts_nothing(owner: Owner) -> None:
    """Raises `UsageError` where making a sample changes the data set, and the next pass would go on from there.

    A field that is filled where it was empty (a file that is opened late, a cache) gives the same whenever that happens, and so does one
    that each pass sets anew.
    """
    file, node = owner
    methods = {each.name.value: each for each in methods_of(node)}
    begun = methods.get("__iter__")
    anew = set(_set_anew(begun)) if begun is not None else set()
    seeks = any(callees.method_name(call) == "seek" for call in descendants(node, cst.Call))  # type: ignore[arg-type]
    for method in used(methods):
        for place, target in changes_in(method):
            holder, _, field = (dotted(unsubscripted(target)) or "").partition(".")
            if holder == "self" and field and "." not in field and field not in anew and not fills(file, method, place, f"self.{field}"):
                raise refuse(f"{file.location(place)}: `{short(file.text(place))}` in a sample, and kept workers go on from there")
        for call in descendants(method.body, cst.Call):
            taken = _taken_from(call)  # type: ignore[arg-type]
            if (taken or "").startswith("self.") and not seeks and (taken or "").split(".")[1] not in anew:
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` takes the next there is, and kept workers go on from it")


def handed_over(project: Project, owners: list[Owner]) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """Where the program changes what a data set was handed, or a variable of its module that it reads."""
    calls = [call for _, owner in owners for call in givers.named(project, owner.name.value)]
    calls += [(where, call) for name in OF_TORCH for where, call in givers.named(project, name) if callees.of_library(project, where, call)]
    read = {node.attr.value for _, owner in owners for node in descendants(owner, cst.Attribute)}  # type: ignore[attr-defined]
    yield from givers.all_changed(project, calls, read, [owner.body for _, owner in owners])
    yield from _variables(project, owners)


def _variables(project: Project, owners: list[Owner]) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    for file, owner in owners:
        methods = [each for each in methods_of(owner) if each.name.value != "__init__"]
        inside = [owner.body, *(each.body for _, each in callees.reached(project, [(file, each) for each in methods]))]
        outer = {name.value for each in methods for name in descendants(each.body, cst.Name) if is_name(file, name)}  # type: ignore[attr-defined,arg-type]
        local = {name for each in methods for name in given.bound(each.body)}
        made = [call for where, call in givers.named(project, owner.name.value) if where is file]
        for name in sorted((outer - local) & given.bound(file.module)):
            for at in made or [owner.body]:
                yield from givers.later(project, file, at, name, inside, 0)


def used(methods: dict[str, cst.FunctionDef]) -> list[cst.FunctionDef]:
    """The methods that a sample runs, and those of the same object that they call."""
    todo, seen = [name for name in SAMPLES if name in methods], []
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.append(name)
        called = {dotted(call.func) or "" for call in descendants(methods[name].body, cst.Call)}  # type: ignore[attr-defined]
        todo += [other for other in methods if f"self.{other}" in called]
    return [methods[name] for name in seen]


def changes_in(method: cst.FunctionDef) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    for node in descendants(method.body, (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Del, cst.Call)):
        if isinstance(node, cst.Call):
            if callees.method_name(node) in changes.METHODS:
                yield node, node.func.value  # type: ignore[attr-defined]
            continue
        for whole in targets_of(node):
            for target in whole.elements if isinstance(whole, (cst.Tuple, cst.List)) else [whole]:
                yield node, target.value if isinstance(target, (cst.Element, cst.StarredElement)) else target


def _set_anew(method: cst.FunctionDef) -> Iterator[str]:
    """Fields that each pass gives a value that does not come from the field itself."""
    for line in method.body.body:
        node = sole(line)
        for target in targets_of(node) if isinstance(node, cst.Assign) else ():
            name = dotted(target) or ""
            if name.startswith("self.") and all(dotted(each) != name for each in descendants(node.value, cst.Attribute)):  # type: ignore[union-attr]
                yield name.removeprefix("self.")


def fills(file: PythonFile, method: cst.FunctionDef, place: cst.CSTNode, name: str) -> bool:
    """Whether `name` gets a value only where it was asked whether it has one: `if self.file is None`, `if i not in self.cache`.

    Also in a method of its own that is called only where that was asked, and gives it a value first. What gets its value together with
    `name` may be asked about instead, as `self.file` for the labels that are read from it.
    """
    if _only_where_asked(file, method, name) and _given_first(file, method, place, name):
        return True
    if isinstance(place, (cst.AugAssign, cst.Del, cst.Call)):
        return False
    if any(isinstance(up, cst.ExceptHandler) and dotted(up.type) in ("KeyError", "AttributeError") for up in file.ancestors(place)):
        return True
    return _asked_in_front(file, method, place, name)


def _asked_in_front(file: PythonFile, method: cst.FunctionDef, place: cst.CSTNode, name: str) -> bool:
    asked = [(up.test, up.body) for up in file.ancestors(place) if isinstance(up, cst.If) and file.inside(up, method)]
    left = [
        (node.test, method.body)
        for node in descendants(method.body, cst.If)
        if file.span(node)[1] <= file.span(place)[0] and any(isinstance(sole(line), cst.Return) for line in node.body.body)  # type: ignore[attr-defined]
    ]
    return any(asks(test, each) for test, block in (*asked, *left) for each in (name, *_fields(block)))


def _always_given(block: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode]]:
    """What a block always gives a value, not under a condition or in a loop of its own, with the line that does."""
    for line in block.body:  # type: ignore[attr-defined]
        if isinstance(line, cst.With):
            yield from _always_given(line.body)
        if isinstance(node := sole(line), cst.Assign):
            yield from ((dotted(target) or "", line) for target in targets_of(node))


def _fields(block: cst.CSTNode) -> list[str]:
    return [name for name, _ in _always_given(block) if name.startswith("self.")]


def _only_where_asked(file: PythonFile, method: cst.FunctionDef, name: str) -> bool:
    """Whether a method that makes no sample is called by its own class alone, each time where it was asked whether `name` has a value."""
    owner = file.class_of(method)
    if owner is None or method.name.value in (*SAMPLES, "__init__"):
        return False
    found = [
        (other, call)
        for other in owner.body.body
        if isinstance(other, cst.FunctionDef) and other is not method
        for call in descendants(other.body, cst.Call)
        if dotted(call.func) == f"self.{method.name.value}"  # type: ignore[attr-defined]
    ]
    together = (name, *_fields(method.body))
    return bool(found) and all(any(_asked_in_front(file, other, call, each) for each in together) for other, call in found)


def _given_first(file: PythonFile, method: cst.FunctionDef, place: cst.CSTNode, name: str) -> bool:
    """Whether the method gives `name` a value at `place`, or always in front of it."""
    lines = (line for given, line in _always_given(method.body) if given == name)
    return any(file.inside(place, line) or file.span(line)[1] <= file.span(place)[0] for line in lines)


def asks(test: cst.BaseExpression, name: str) -> bool:
    """Whether a condition asks if `name` has a value, or has one for a key."""
    kinds = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
    for node in descendants(test, (cst.Comparison, cst.UnaryOperation, cst.Call)):
        named = any(dotted(each) == name for each in descendants(node, (cst.Attribute, cst.Name)))
        if isinstance(node, cst.Comparison):
            if named and all(isinstance(each.operator, kinds) for each in node.comparisons):
                return True
        elif isinstance(node, cst.Call):
            if dotted(node.func) == "hasattr" and any(f"self.{string_value(arg.value)}" == name for arg in node.args):
                return True
        elif named and isinstance(node.operator, cst.Not):
            return True
    return False


def _taken_from(call: cst.Call) -> str | None:
    name = callees.called_name(call)
    if name not in TAKES:
        return None
    if isinstance(call.func, cst.Attribute):
        return dotted(call.func.value)
    return dotted(call.args[0].value) if call.args else None
