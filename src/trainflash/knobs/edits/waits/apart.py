"""What a thread that makes batches may meet the training in: attributes, variables, what both were handed, networks, buffers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import changes, given, givers, outside, quiet, sharing, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, own_classes
from trainflash.knobs.reading.expressions import given_to, is_name, refuse, short
from trainflash.knobs.reading.python_source import (
    ASSIGNS,
    LOOPS,
    PythonFile,
    descendants,
    dotted,
    own_method,
    parameter_names,
    targets_of,
)

MAKING = ("__init__", "__post_init__", "__new__", "__setstate__")
TRAINED = {"parameters", "named_parameters", "load_state_dict", "state_dict", "zero_grad"}
TEXTS = {"tok", "tokenize", "tokenizer", "enc", "encoder"}  # what makes numbers of texts, and is called like a function

Function = tuple[PythonFile, cst.FunctionDef]


def reached(project: Project, start: Function) -> list[Function]:
    """The functions that the generator calls, however deep, and those that `x[i]` and going through an object may lead to."""
    starts = [start]
    while True:
        found = list(callees.reached(project, starts))
        names = {name for _, each in found for name in _implied(each)}
        more = [each for name in sorted(names) for each in callees.defined(project, name)]
        if all(any(known is each for _, known in found) for _, each in more):
            return found
        starts = [*starts, *more]


def _implied(function: cst.FunctionDef) -> Iterator[str]:
    for node in descendants(function.body, (cst.Subscript, cst.For, cst.CompFor)):
        if isinstance(node, cst.Subscript):
            if quiet.asks_for_one(node):
                yield "__getitem__"
        elif not (isinstance(node.iter, cst.Call) and callees.called_name(node.iter) == "range"):
            yield from ("__iter__", "__next__", "__getitem__")


def used_outside(project: Project, attribute: str, inside: list[Function]) -> tuple[PythonFile, cst.CSTNode] | None:
    """Where anything but `inside` and what makes the object uses an attribute."""
    for where in project.parsed(attribute):
        for node in where.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value == attribute:
                around = where.function_around(node)
                if around is None or (around.name.value not in MAKING and all(around is not each for _, each in inside)):
                    return where, node
    return None


def apart(project: Project, start: Function, inside: list[Function]) -> None:
    """Raises `UsageError` where what making reads is changed by somebody else, or what it changes is read by somebody else."""
    own = {node.attr.value for _, each in inside for node in descendants(each.body, cst.Attribute) if dotted(node.value) == "self"}  # type: ignore[attr-defined]
    others = {node.attr.value for where, each in inside for node in _of_others(where, each)} - sharing.FACTS
    for where, node, attribute in _changes(project):
        around = where.function_around(node)
        mine = around is not None and any(around is each for _, each in inside)
        if mine and (used := used_outside(project, attribute, inside)) is not None:
            raise refuse(f"{used[0].location(used[1])}: `{short(used[0].text(used[1]))}` is read here, and would be ahead")
        made = around is not None and around.name.value in MAKING
        begun = around is None or around.name.value == "main"
        late = not begun or any(isinstance(up, LOOPS) for up in where.ancestors(node))
        if not mine and not made and (attribute in own or (attribute in others and late)):
            raise refuse(f"{where.location(node)}: `{short(where.text(node))}` changes what the next batches are made of")
    for where, each in inside:
        _variables(project, where, each, inside)
    _handed(project, start, inside, own | others)
    _networks(project, inside)


def _of_others(file: PythonFile, function: cst.FunctionDef) -> Iterator[cst.Attribute]:
    """Attributes of what a function was handed, or of variables of the module."""
    local = given.bound(function.body)
    for node in descendants(function.body, cst.Attribute):
        name = changes.root(node)  # type: ignore[arg-type]
        if name and name not in local | {"self"} and name not in file.imported:
            yield node  # type: ignore[misc]


def _variables(project: Project, file: PythonFile, function: cst.FunctionDef, inside: list[Function]) -> None:
    """Raises `UsageError` where a variable of the module is set again or changed, here or by others."""
    here, name = file.location(function), function.name.value
    own = given.bound(function.body) | parameter_names(function)
    outer = {node.value for node in descendants(function.body, cst.Name) if is_name(file, node)} - own  # type: ignore[attr-defined,arg-type]
    added = given.added_to(file.module)
    if any(True for _ in descendants(function.body, (cst.Global, cst.Nonlocal))):
        raise refuse(f"{here}: {name} changes variables of others")
    bodies = [each.body for where, each in inside if where is file]
    for each in sorted((outer & given.bound(file.module)) | (outer & added)):
        if len(given_to(file.module, each)) > 1 or each in added:
            raise refuse(f"{here}: {name} reads {each}, which is set again")
        changed = changes.changed(project, file, function.body, {each})
        if changed is not None and _read(project, file, each, inside):
            raise refuse(f"{file.location(changed)}: `{short(file.text(changed))}` changes {each}, which others read")
        for where, node in givers.later(project, file, function.body, each, bodies, 0):
            raise refuse(f"{where.location(node)}: `{short(where.text(node))}` changes what the next batches are made of")
    for each in sorted(outer & set(file.imported)):
        source = project.parsed(each) if callees.of_project(project, file.imported[each]) else ()
        for where in source:
            if where is not file and each in given.bound(where.module) and len(given_to(where.module, each)) != 1:
                raise refuse(f"{here}: {name} reads {each}, which is set again")


def _read(project: Project, file: PythonFile, name: str, inside: list[Function]) -> bool:
    """Whether anything but `inside` reads a variable of the module."""
    reads = outside.reads(project, file, name)
    return any(not any(where is known and where.inside(node, each) for known, each in inside) for where, node in reads)


def _handed(project: Project, start: Function, inside: list[Function], read: set[str]) -> None:
    """Raises `UsageError` where the generator changes what it was handed, or whoever handed it over does."""
    file, function = start
    params = parameter_names(function) - {"self", "cls"}
    node = changes.changed(project, file, function.body, params) if params else None
    if node is not None:
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` changes what others may read")
    owners = {id(owner): (where, owner) for where, each in inside if (owner := where.class_of(each)) is not None}
    calls = [
        *givers.makers(project, file, function),
        *(call for _, owner in owners.values() for call in givers.named(project, owner.name.value)),
    ]
    changed = givers.changed(project, calls, read, [each for _, each in inside])
    if changed is not None:
        raise refuse(f"{changed[0].location(changed[1])}: `{short(changed[0].text(changed[1]))}` changes what the next batches are made of")


def _networks(project: Project, inside: list[Function]) -> None:
    """Raises `UsageError` where the generator runs what may be trained."""
    trained = {
        (dotted(call.func.value) or "").split(".")[-1]  # type: ignore[attr-defined]
        for where in project.parsed()
        for call in where.calls
        if callees.method_name(call) in TRAINED
    } - {"", "self", "optimizer", "opt", "scheduler"}
    for where, each in inside:
        params = parameter_names(each)
        owner = where.class_of(each)
        for call in descendants(each.body, cst.Call):
            name, text = callees.called_name(call), where.text(call.func)  # type: ignore[arg-type,attr-defined]
            base = dotted(call.func) or ""  # type: ignore[attr-defined]
            made = given_to(owner, base) if owner is not None and base.startswith("self.") else given_to(where.module, base) if base else []
            runs = set(base.split(".")) & trained and base.split(".")[0] not in where.imported
            value = base in params or bool(made)
            network = any(_is_network(project, where, each) for each in made)
            if runs or network or (value and not set(name.lower().split("_")) & TEXTS):
                raise refuse(f"{where.location(call)}: `{short(text)}` may run what is trained, or draw random numbers")


def _is_network(project: Project, file: PythonFile, value: cst.BaseExpression) -> bool:
    """Whether a value is one of torch's layers, or an object of a class of the program that has a `forward`."""
    layer = isinstance(value, cst.Call) and (file.full_name(value.func) or "").startswith("torch.nn.")
    owner = own_classes.class_of(project, (file, value), any_class=True)
    return layer or (owner is not None and own_method(owner[1], "forward") is not None)


def _changes(project: Project) -> Iterator[tuple[PythonFile, cst.CSTNode, str]]:
    """Statements and calls that change an attribute, or what it holds, with its name."""
    for where in project.parsed():
        for node in where.nodes:
            if isinstance(node, ASSIGNS):
                held = [
                    each.value if isinstance(each, cst.Subscript) else each
                    for whole in targets_of(node)
                    for each in sharing.elements(whole)
                ]
            elif isinstance(node, cst.Call) and callees.method_name(node) in changes.METHODS:
                held = [node.func.value]  # type: ignore[attr-defined]
            else:
                continue
            yield from ((where, node, each.attr.value) for each in held if isinstance(each, cst.Attribute))


# --- what is handed out


def fresh(project: Project, file: PythonFile, function: cst.FunctionDef, inside: list[Function]) -> None:
    """Raises `UsageError` where something is handed out that is filled anew for the next batch."""
    for each in descendants(function.body, cst.Yield):
        for name in sorted(_kept(file, function, each)):
            shared = sharing.Shared(project, file, {name}).within(function.body)
            told = [node for node in descendants(each, (cst.Name, cst.Attribute)) if shared.holds(node)]  # type: ignore[arg-type]
            filled = name.startswith("self.") and any(changes.changed(project, where, one.body, {name}) for where, one in inside)
            if told and (filled or _filled(project, file, function, name, shared)):
                raise refuse(f"{file.location(each)}: `{name}` is handed out, and filled anew for the next batch")


def _kept(file: PythonFile, function: cst.FunctionDef, out: cst.CSTNode) -> set[str]:
    """Variables and attributes that are not made anew in the loops around what is handed out."""
    names = {dotted(node) or "" for node in descendants(function.body, (cst.Name, cst.Attribute)) if not _part(file, node)}
    loops = list(file.loops_around(out))
    anew = {name for loop in loops for name in given.bound(loop) if given_to(loop.body, name)}
    anew |= {name for loop in loops if isinstance(loop, cst.For) for name in given.unpacked(loop.target)}
    return names - anew - {"", "self"} - set(file.imported)


def _part(file: PythonFile, node: cst.CSTNode) -> bool:
    return isinstance(file.parent(node), cst.Attribute) or (isinstance(node, cst.Name) and not is_name(file, node))


def _filled(project: Project, file: PythonFile, function: cst.FunctionDef, name: str, shared: sharing.Shared) -> bool:
    """Whether what `name` holds is changed, or handed to a method that nobody knows, which may fill it."""
    if changes.changed(project, file, function.body, {name}) is not None:
        return True
    for call in descendants(function.body, cst.Call):
        known = callees.of_library(project, file, call) or any(True for _ in callees.meant(project, file, call))  # type: ignore[arg-type]
        method = callees.method_name(call)  # type: ignore[arg-type]
        if method and not known and method not in writers.REPORTS and "." in file.text(call.func) and shared.handed(call):  # type: ignore[attr-defined,arg-type]
            return method not in quiet.LOOKS
    return False
