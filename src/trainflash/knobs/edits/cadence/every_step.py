"""Statements that lead to a costly line and run in every step: that line's own, and those that call what it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.effects import changes, guarded
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants
from trainflash.knobs.scene import Scene
from trainflash.knobs.training import paced
from trainflash.schema import Location

HIGHEST = 3  # own: calls between the costly line and the statement that leads to it
STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
EVALUATIONS = ("eval", "valid", "test", "predict")  # how the names of functions begin that a step of training does not run
ACTIVITIES = ("evaluation", "checkpoint", "logging")


@dataclass(frozen=True)
class Level:
    """A statement that leads to the costly line, in the body of the loop over the steps or of a function that runs in each of them."""

    file: PythonFile
    statement: cst.CSTNode
    loop: cst.For | cst.While | None
    function: cst.FunctionDef | None


def of_finding(scene: Scene) -> list[Level]:
    """From the finding's line outwards. Raises `UsageError` where no line is known, or where one of them is done now and then already."""
    file, place = scene.source("causes it", _place(scene))
    evaluates = scene.finding is None or scene.finding.phase == "Eval"
    levels = list(_from(scene.project, file, place, evaluates))
    for level in levels:  # what it leads to is a part of it: half of what is done now and then must not be done more rarely
        _every_step(level)
    if not levels:
        raise refuse(f"{place}: nothing that runs in every step leads there")
    return levels


def _place(scene: Scene) -> Location | None:
    if scene.finding is None:
        return None
    ran = scene.facts.get(scene.finding.kind) if scene.finding.kind in ACTIVITIES else None
    return scene.finding.location or (ran.location if ran is not None else None)


def _from(project: Project, file: PythonFile, place: Location, evaluates: bool) -> Iterator[Level]:
    """From the line outwards, over calls that can mean nothing but the function around it; evaluations' only where it `evaluates`."""
    function = file.function_at(place)
    nodes: list[cst.CSTNode] = _statement_at(file, place)
    for _ in range(HIGHEST + 1):
        if not nodes:
            return
        loop = next((each for each in file.loops_around(nodes[0]) if _hands_over(each) or _trains(project, file, each)), None)
        body = loop.body if loop is not None else function.body if function is not None else None
        for statement in reversed(_nested(file, nodes, body)):
            yield Level(file, statement, loop, function)
        if loop is not None or function is None:
            return
        sites = [site for site in callers.sites(project, file, function) if not _once(project, *site)]
        sites = [site for site in sites if evaluates or not _evaluates(*site)]
        around = {where.function_around(call) for where, call in sites}
        if len(around) != 1 or any(len(list(callees.meant(project, *site))) != 1 or _one_of_several(*site) for site in sites):
            return
        file, nodes, function = sites[0][0], [call for _, call in sites], around.pop()


def _once(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether `call` stands in no loop, beside the loop over the steps: what it does at the end or the start stays as it is."""
    if any(True for _ in file.loops_around(call)):
        return False
    around = file.function_around(call) or file.module
    return any(_trains(project, file, loop) for loop in descendants(around, LOOPS))


def _evaluates(file: PythonFile, call: cst.Call) -> bool:
    """Whether a call stands in a function that evaluates, as its name says."""
    function = file.function_around(call)
    return function is not None and function.name.value.lstrip("_").startswith(EVALUATIONS)


def _one_of_several(file: PythonFile, call: cst.Call) -> bool:
    """Whether a loop goes over what is called: its rounds may do other things, too."""
    owner = changes.root(call.func)
    targets = [up.target for up in file.ancestors(call) if isinstance(up, (cst.For, cst.CompFor))]
    return any(name.value == owner for target in targets for name in descendants(target, cst.Name))


def _statement_at(file: PythonFile, place: Location) -> list[cst.CSTNode]:
    """The innermost statement that covers the line, if there is one."""
    found: list[cst.CSTNode] = []
    for node in file.nodes:
        if isinstance(node, STATEMENTS) and not isinstance(node, (cst.FunctionDef, cst.ClassDef)) and file.covers(node, place.line):
            found = [node]
    return found


def _nested(file: PythonFile, nodes: list[cst.CSTNode], body: cst.CSTNode | None) -> list[cst.CSTNode]:
    """The statement of `body` that holds all `nodes`; where it is a condition, also that of its block, and so on."""
    statements: list[cst.CSTNode] = []
    while True:
        found = {_outermost(file, node, body) for node in nodes}
        statement = found.pop() if len(found) == 1 else None
        if statement is None:
            return statements
        statements.append(statement)
        if not isinstance(statement, cst.If) or any(node is statement for node in nodes):
            return statements
        body = statement.body


def _outermost(file: PythonFile, node: cst.CSTNode, body: cst.CSTNode | None) -> cst.CSTNode | None:
    """The statement of `body` itself that is `node` or lies around it."""
    below = node
    for up in file.ancestors(node):
        if up is body:
            return below if isinstance(below, STATEMENTS) else None
        below = up
    return None


def _hands_over(loop: cst.For | cst.While) -> bool:
    """Whether each round of a generator's loop hands something over: whoever trains asks for one in each step."""
    return any(isinstance(line, cst.SimpleStatementLine) and any(True for _ in descendants(line, cst.Yield)) for line in loop.body.body)


def _trains(project: Project, file: PythonFile, loop: cst.CSTNode) -> bool:
    """Whether the loop's rounds are steps: an update stands in it, or in what it calls."""
    calls: list[cst.Call] = list(descendants(loop, cst.Call))  # type: ignore[arg-type]
    starts = [each for call in calls for each in callees.meant(project, file, call)]
    places = [(file, loop), *callees.reached(project, starts)]
    return any(guarded.updates(where, call) for where, part in places for call in descendants(part, cst.Call))  # type: ignore[arg-type]


def _every_step(level: Level) -> None:
    """Raises `UsageError` where the statement is done now and then already."""
    for up in (level.statement, *level.file.ancestors(level.statement)):
        if isinstance(up, cst.If) and (paced.remainders(up.test) or paced.meets_once(level.file, up)):
            raise refuse(f"{level.file.location(up)}: it is done now and then already")
        if isinstance(up, (cst.FunctionDef, *LOOPS)) and up is not level.statement:
            break
