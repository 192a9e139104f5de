"""Settings of a library that the program makes by a statement: one put in, or the value of one that is there."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import behind
from trainflash.knobs.effects import collected, writers
from trainflash.knobs.kinds import AssignedAttribute, InsertCall
from trainflash.knobs.project import Project
from trainflash.knobs.reading import library_settings, sources
from trainflash.knobs.reading.expressions import literal, no_place, refuse, short, spelled_value
from trainflash.knobs.reading.python_source import SCOPES, PythonFile, dotted, keyword, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.surfaces import shell
from trainflash.schema import Location

SHOWS = ("print", "debug", "info", "warning", "log")


def insert_call(edit: InsertCall, scene: Scene) -> tuple[Target, ...]:
    """The place behind the imports of the entry script, or behind what decides it. Raises `UsageError` when the program does so already."""
    project = scene.project
    if project.entry is None:
        raise refuse("the script that the command starts cannot be told", "name a Python file in the command")
    alone(project, (edit.absent, *edit.rivals), edit.asked)
    _switched_on(scene, edit.under)
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
    found = [node for node in file.each(cst.SimpleStatementLine) if file.covers(node, place.line)]
    if not found or isinstance(sole(found[-1]), cst.Return):
        raise refuse(f"{place}: what sets it is no statement behind which another could stand")
    return [found[-1], *file.loops_around(found[-1])][-1]


def assigned_attribute(edit: AssignedAttribute, scene: Scene) -> tuple[Target, ...]:
    """The one place where the program assigns to the attribute. Raises `UsageError` when there is none, or more than one."""
    found = library_settings.assigned(scene.project, edit.attribute)
    name = edit.attribute.split(".")[-1]
    if not found:
        raise no_place(f"no call of {name}: the program does not set {edit.attribute}")
    if len(found) > 1:
        raise refuse(f"{edit.attribute} is set at several places: {', '.join(str(file.location(node)) for file, node, _ in found[:4])}")
    file, node, value = found[0]
    here = file.location(node)
    _switched_on(scene, edit.under)
    _holds_for_training(file, node)
    made_always(file, node, scene.facts.get("device"))
    source = sources.Resolver(scene.project).source(file, value) if value is not None else None
    if source is None or source.write is None or source.readers:
        raise refuse(f"{here}: what is assigned to {edit.attribute} is not its own: `{file.text(value if value is not None else node)}`")
    return (Target(here, source.value, source.write, f"{edit.attribute}, from {source.shown}"),)


def made_always(file: PythonFile, node: cst.CSTNode, device: object) -> None:
    """Raises `UsageError` where a condition may keep a run, or a rank, from the statement at `node`; one on a GPU holds on a GPU."""
    below = node
    for up in file.ancestors(node):
        if isinstance(up, SCOPES):
            return
        asked = isinstance(up, cst.If) and below is up.body and str(device).startswith("cuda")
        on_gpu = asked and re.fullmatch(r"[\w.]*?(cuda|gpu|is_available)(\(\))?", file.text(up.test))  # type: ignore[union-attr]
        if isinstance(up, (cst.If, cst.While, cst.ExceptHandler, cst.MatchCase)) and not on_gpu:
            raise refuse(f"{file.location(node)}: it stands under a condition, so this may not be what each run had")
        below = up


def alone(project: Project, names: tuple[str, ...], asked: tuple[str, ...] = ()) -> None:
    """Raises `UsageError` where the program makes one of the settings `names`: dotted, `call(argument)`, or a variable `$NAME`.

    Also where it does more with what one of the functions `asked` tells than to show it.
    """
    for name in asked:
        for file, node in library_settings.mentions(project, name):
            if not writers.stands_in_call(file, node, SHOWS):
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` asks for the setting, and counts on the answer")
    for name in names:
        if name.startswith("$"):
            for target in shell.variable(project, name[1:]):
                raise refuse(f"{target.where} decides this already")
            continue
        for other, node in library_settings.mentions(project, name):
            raise refuse(f"{other.location(node)}: {name} is set here already")


def _switched_on(scene: Scene, switch: str | None) -> None:
    """Raises `UsageError` where the program sets `switch`, without which the setting does nothing, to anything but True."""
    for file, node, value in library_settings.assigned(scene.project, switch) if switch is not None else ():
        if value is None or literal(value) is not True:
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` may switch off what the setting is for")


def _holds_for_training(file: PythonFile, node: cst.CSTNode) -> None:
    """Raises `UsageError` where the setting holds for a block that does not train, or that asks for determinism."""
    if not isinstance(node, cst.Call) or (dotted(node.func) or "").split(".")[-1] != "flags":
        return
    strict = keyword(node, "deterministic")
    if strict is not None and literal(strict.value) is not False:
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` asks for deterministic algorithms, too")
    if not library_settings.trains_within(file, node):
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` holds for a block that is not known to train")
