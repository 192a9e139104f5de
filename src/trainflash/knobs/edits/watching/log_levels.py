"""The level of a logger that lets the messages of every step through: raised, so that they are neither put together nor written."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.watching import switched
from trainflash.knobs.edits.watching.log_guards import log_call
from trainflash.knobs.kinds import LogLevel
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import given_to, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit, Splice

ASKS = ("isEnabledFor", "getEffectiveLevel", "level")
LOW, RAISED = "logging.DEBUG", "INFO"
RAISED_FROM = {"DEBUG": "INFO", "debug": "info", 10: 20}  # as names and numbers of levels
AROUND = ("upper", "getLevelName")  # calls that take a level's name


def log_level(edit: LogLevel, scene: Scene) -> tuple[Target, ...]:
    """The one level DEBUG of a logger. Raises `UsageError` where the line logs at another, or where no or several such levels are set."""
    place = scene.at or (scene.finding.location if scene.finding is not None else None)
    if place is None:
        raise refuse("the line that logs is not known", "name it with --at FILE:LINE")
    file, call = log_call(scene, place)
    if callees.called_name(call) != "debug":
        raise refuse(f"{file.location(call)}: `{short(file.text(call))}` is no message for debugging")
    found = [target for where, node in _levels(scene.project) if (target := _target(scene.project, where, node)) is not None]
    _decides_messages_alone(scene.project)
    if len(found) != 1:
        raise refuse("no level DEBUG of a logger is set in the program" if not found else "several loggers are set to DEBUG")
    return (found[0],)


def _decides_messages_alone(project: Project) -> None:
    """Raises `UsageError` where something hangs on the level of a logger that is more than messages."""
    for word in ASKS:
        for file in project.parsed(word):
            for node in file.nodes:
                if isinstance(node, cst.Attribute) and node.attr.value == word and _asks(file, node):
                    guard = next((up for up in file.ancestors(node) if isinstance(up, cst.If) and file.inside(node, up.test)), None)
                    reason = switched.more(project, file, guard, ()) if guard is not None else ""
                    if reason is not None:
                        why = f"more than messages hangs on `{file.text(node)}`"
                        raise refuse(f"{file.location(node)}: {why}" + (f" ({reason})" if reason else ""))


def _asks(file: PythonFile, node: cst.Attribute) -> bool:
    """Whether the level of a logger is read, of whatever name where only loggers are asked in that way."""
    if node.attr.value != "level":
        return isinstance(file.parent(node), cst.Call)
    if isinstance(file.parent(node), (cst.AssignTarget, cst.Attribute)):
        return False
    owner = file.text(node.value).lower()
    return (owner.split(".")[-1].startswith("log") and "args" not in owner) or "getlogger" in owner or owner == "logging.root"


def _levels(project: Project) -> Iterator[tuple[PythonFile, cst.BaseExpression]]:
    """What `logger.setLevel` and `logging.basicConfig` are given; handlers have levels of their own, behind the logger's."""
    for file in project.parsed("setLevel"):
        for call in file.calls:
            given = positional(call, 0) or keyword(call, "level")
            sets = isinstance(call.func, cst.Attribute) and call.func.attr.value == "setLevel"
            if sets and given is not None and not _is_handler(file, call.func.value):  # type: ignore[union-attr]
                yield file, given.value
    for file in project.parsed("basicConfig"):
        for call in file.calls:
            given = keyword(call, "level")
            if file.full_name(call.func) == "logging.basicConfig" and given is not None:
                yield file, given.value


def _is_handler(file: PythonFile, owner: cst.BaseExpression) -> bool:
    name = dotted(owner)
    around = (file.function_around(owner), file.class_around(owner), file.module)
    made = [value for each in around if name is not None and each is not None for value in given_to(each, name)]
    return any(isinstance(value, cst.Call) and callees.called_name(value).endswith("Handler") for value in made)


def _target(project: Project, file: PythonFile, node: cst.BaseExpression) -> Target | None:
    """Where a level DEBUG is written; None where it is another, or nobody typed it."""
    here, what = file.location(node), f"the level of the logger at {file.location(node)}"
    if file.full_name(node) == LOW:
        raised, needed = imports.reach(file, "logging", RAISED)
        return Target(here, None, lambda value: (*needed, Splice(file.path, *file.outer_span(node), raised)), what, RAISED)
    try:
        source = sources.Resolver(project).source(file, _named(node))
    except UsageError:
        return None
    if source is None or source.write is None or source.value not in RAISED_FROM:
        return None
    if source.readers:
        raise source.shared_with(source.readers[0])

    def write(value: object) -> tuple[Edit, ...]:
        return tuple(source.write(RAISED_FROM[source.value]))  # type: ignore[misc]

    return Target(here, None, write, f"{what}, from {source.shown}", RAISED)


def _named(node: cst.BaseExpression) -> cst.BaseExpression:
    """The name of a level in `getattr(logging, name)`, `name.upper()` and `logging.getLevelName(name)`."""
    while isinstance(node, cst.Call):
        if dotted(node.func) == "getattr" and len(node.args) >= 2:
            node = node.args[1].value
        elif callees.called_name(node) in AROUND:
            node = node.args[0].value if node.args else node.func.value  # type: ignore[attr-defined]
        else:
            break
    return node
