"""Settings of a library that the program makes by a statement: one put in, or the value of one that is there."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import behind
from trainflash.knobs.effects import collected
from trainflash.knobs.kinds import AssignedAttribute, InsertCall
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.expressions import given_to, refuse, spelled_value
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, sole, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location


def insert_call(edit: InsertCall, scene: Scene) -> tuple[Target, ...]:
    """The place behind the imports of the entry script, or behind what decides it. Raises `UsageError` when the program does so already."""
    project = scene.project
    if project.entry is None:
        raise refuse("the script that the command starts cannot be told", "name a Python file in the command")
    for name in (edit.absent, *edit.rivals):
        for other, node in _mentions(scene, name):
            raise refuse(f"{other.location(node)}: {name} is set here already")
    if edit.module == "gc":
        collected.nobody_needs_collections(project)
        collected.frees_no_handles(project)
    decides = scene.facts.get(edit.behind) if edit.behind is not None else None
    told = decides if project.owns(decides) else None
    file = project.python(project.entry if told is None else told.file)
    tail = edit.absent.removeprefix(f"{edit.module}.")
    spelled, needed = imports.reach(file, edit.module, tail)
    if needed:
        imports.loads_nothing_early(project, edit.module)
    current = scene.facts.get(edit.default_fact) if edit.default_fact is not None else None
    current = edit.default if current is None else current
    whole = None if told is None else _deciding(file, told)
    offset = imports.after_imports(file, spelled)

    def write(value: Any) -> tuple[Splice, ...]:
        statement = edit.statement.format(value=spelled_value(value)).replace(edit.absent, spelled, 1)
        if whole is not None:
            return (*needed, behind(file, whole, file.indent(whole), statement))
        separator = "" if file.raw[:offset].endswith(b"\n") or not offset else file.newline
        return (*needed, Splice(file.path, offset, offset, f"{separator}{file.newline}{statement}{file.newline}"))

    if told is not None:
        return (Target(told, current, write, f"{edit.absent} behind {told}, which sets it"),)
    line = file.raw.count(b"\n", 0, offset)
    return (Target(Location(file.path, max(1, line)), current, write, f"{edit.absent} after the imports of {file.path}"),)


def _deciding(file: PythonFile, place: Location) -> cst.CSTNode:
    """The statement at `place`, or the outermost loop of its function around it."""
    found = [node for node in file.nodes if isinstance(node, cst.SimpleStatementLine) and file.covers(node, place.line)]
    if not found or isinstance(sole(found[-1]), cst.Return):
        raise refuse(f"{place}: what sets it is no statement behind which another could stand")
    return [found[-1], *file.loops_around(found[-1])][-1]


def assigned_attribute(edit: AssignedAttribute, scene: Scene) -> tuple[Target, ...]:
    """The one place where the program assigns to the attribute. Raises `UsageError` when there is none, or more than one."""
    found = [(file, node, value) for file, node, value in _assigned(scene, edit.attribute)]
    name = edit.attribute.split(".")[-1]
    if not found:
        raise refuse(f"no call of {name}: the program does not set {edit.attribute}")
    if len(found) > 1:
        raise refuse(f"{edit.attribute} is set at several places: {', '.join(str(file.location(node)) for file, node, _ in found[:4])}")
    file, node, value = found[0]
    here = file.location(node)
    source = sources.Resolver(scene.project).source(file, value) if value is not None else None
    if source is None or source.write is None or source.readers:
        raise refuse(f"{here}: what is assigned to {edit.attribute} is not its own: `{file.text(value if value is not None else node)}`")
    return (Target(here, source.value, source.write, f"{edit.attribute}, from {source.shown}"),)


def _mentions(scene: Scene, name: str) -> list[tuple[PythonFile, cst.CSTNode]]:
    """Calls of `name` and assignments to it, in the whole program."""
    found: list[tuple[PythonFile, cst.CSTNode]] = []
    for file in scene.project.parsed(name.split(".")[-1]):
        found += [(file, call) for call in file.calls if file.full_name(call.func) == name]
    return found + [(file, node) for file, node, _ in _assigned(scene, name)]


def _assigned(scene: Scene, name: str) -> list[tuple[PythonFile, cst.CSTNode, cst.BaseExpression | None]]:
    """Assignments to the dotted `name`, alone or among others, also by `setattr` and as an argument of a context, with what is assigned."""
    owner, _, last = name.rpartition(".")
    found: list[tuple[PythonFile, cst.CSTNode, cst.BaseExpression | None]] = []
    for file in scene.project.parsed(last):
        for node in file.nodes:
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    found += [(file, node, value) for part, value in _pairs(target.target, node.value) if _full(file, part) == name]
        for call in file.calls:
            args = call.args
            if (
                dotted(call.func) == "setattr"
                and len(args) == 3
                and string_value(args[1].value) == last
                and _full(file, args[0].value) == owner
            ):
                found.append((file, call, args[2].value))
            elif _full(file, call.func) == f"{owner}.flags" and (given := keyword(call, last)) is not None:
                found.append((file, call, given.value))
    return found


def _pairs(target: cst.BaseExpression, value: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    """Each single target and what it is given; None where that is not written out."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        return [(target, value)]
    written = isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(target.elements)
    values = [each.value for each in value.elements] if written else [None] * len(target.elements)  # type: ignore[attr-defined]
    return [(part.value, given) for part, given in zip(target.elements, values, strict=True)]


def _full(file: PythonFile, node: cst.CSTNode) -> str | None:
    """The dotted name with imports resolved, and a name of the file's own that stands for a module."""
    full = file.full_name(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
    first, dot, rest = (full or "").partition(".")
    stands = [each for each in given_to(file.module, first) if dotted(each) is not None] if first and first not in file.imported else []
    return f"{file.full_name(stands[0])}{dot}{rest}" if len(stands) == 1 else full
