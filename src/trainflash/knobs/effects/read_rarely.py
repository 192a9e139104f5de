"""Where the program reads what a function leaves in fields, and under which condition: a hint that it is computed for nobody most times."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import given
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, targets_of, unsubscripted
from trainflash.schema import Location

MOST = 3  # own: fields and places that are named


def read_rarely(project: Project, place: Location) -> tuple[str, ...]:
    """A sentence for each field that the function at `place` sets, and whose readers all stand under a condition."""
    file = project.python(place.file)
    function = file.function_at(place)
    return tuple(_sentences(project, file, function))[:MOST] if function is not None else ()


def _sentences(project: Project, file: PythonFile, function: cst.FunctionDef) -> Iterator[str]:
    for name in dict.fromkeys(_fields(function)):
        read = [(where, node) for where, node in _reads(project, name) if where is not file or not where.inside(node, function)]
        asked = [(where, node, _condition(project, where, node)) for where, node in read]
        if asked and all(condition for _, _, condition in asked):
            places = [f"{where.location(node)} where `{condition}`" for where, node, condition in asked]
            more = f" and at {len(places) - MOST} more places" if len(places) > MOST else ""
            yield f"`{name}`, which {function.name.value} sets, is read at {', '.join(places[:MOST])}{more}"


def _fields(function: cst.FunctionDef) -> Iterator[str]:
    """Attributes that the function sets, whole or by a key."""
    for node in descendants(function.body, (cst.Assign, cst.AnnAssign)):
        for target in targets_of(node):
            held = unsubscripted(target)
            if isinstance(held, cst.Attribute) and dotted(held) is not None:
                yield held.attr.value


def _reads(project: Project, name: str) -> Iterator[tuple[PythonFile, cst.Attribute]]:
    """Where an attribute of that name is read; what only sets it, or an element of it, is none."""
    for where in project.parsed(name):
        for node in where.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value == name and not given.stored(where, node):
                yield where, node


def _condition(project: Project, file: PythonFile, node: cst.CSTNode) -> str:
    """The condition under which `node` is read: around it, or around the only call of its function; empty without one."""
    for _ in range(2):
        function = file.function_around(node)
        for up in file.ancestors(node):
            if up is function:
                break
            if isinstance(up, cst.If) and not file.inside(node, up.test):
                return short(file.text(up.test))
        sites = callers.sites(project, file, function) if function is not None else []
        if len(sites) != 1:
            return ""
        file, node = sites[0]
    return ""
