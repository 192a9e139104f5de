"""Do now and then what the program does in every step: statements that only watch the training come under `if step % N == 0:`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.statements import long_text, under
from trainflash.knobs.effects import changes, given, guarded, writers
from trainflash.knobs.kinds import Seldom
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import counters, paced
from trainflash.schema import Location

HIGHEST = 3  # own: calls between the costly line and the statement that is done now and then
MOST = 6  # own: statements that come under the condition together
STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
SHOWS = ("print", "info", "debug", "write", "log", "add_scalar", "set_postfix")
OWN_FILE = ("open", "write_bytes", "write_text")  # of a path
NEEDS_FILE = {"copy", "copy2", "copyfile", "hardlink_to", "move", "remove", "rename", "replace", "symlink", "symlink_to", "unlink"}
ACTIVITIES = ("evaluation", "checkpoint", "logging")


@dataclass(frozen=True)
class _Level:
    """A statement that leads to the costly line, in the body of the loop over the steps or of a function that runs in each of them."""

    file: PythonFile
    statement: cst.CSTNode
    loop: cst.For | cst.While | None
    function: cst.FunctionDef | None


def seldom(edit: Seldom, scene: Scene) -> tuple[Target, ...]:
    """The outermost statement that leads to the finding's line and that training can do without, with those that show what it finds.

    Raises `UsageError` where it is done now and then already, where training reads what it sets, or where nothing counts the steps.
    """
    file, place = scene.source("causes it", _place(scene))
    reasons = []
    levels = list(_levels(scene.project, file, place))
    for level in levels:  # what it leads to is a part of it: half of what is done now and then must not be done more rarely
        _every_step(level)
    for level in reversed(levels):
        try:
            return (_target(scene, level),)
        except UsageError as bad:
            reasons.append(bad)
    raise reasons[0] if reasons else refuse(f"{place}: nothing that runs in every step leads there")


def _place(scene: Scene) -> Location | None:
    if scene.finding is None:
        return None
    ran = scene.facts.get(scene.finding.kind) if scene.finding.kind in ACTIVITIES else None
    return scene.finding.location or (ran.location if ran is not None else None)


def _levels(project: Project, file: PythonFile, place: Location) -> Iterator[_Level]:
    """From the line outwards, over calls that can mean nothing but the function around it."""
    function = file.function_at(place)
    nodes: list[cst.CSTNode] = _statement_at(file, place)
    for _ in range(HIGHEST + 1):
        if not nodes:
            return
        loop = next((each for each in file.loops_around(nodes[0]) if _trains(project, file, each)), None)
        body = loop.body if loop is not None else function.body if function is not None else None
        for statement in reversed(_nested(file, nodes, body)):
            yield _Level(file, statement, loop, function)
        if loop is not None or function is None:
            return
        sites = [site for site in callers.sites(project, file, function) if not _once(project, *site)]
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


def _trains(project: Project, file: PythonFile, loop: cst.CSTNode) -> bool:
    """Whether the loop's rounds are steps: an update stands in it, or in what it calls."""
    calls: list[cst.Call] = list(descendants(loop, cst.Call))  # type: ignore[arg-type]
    starts = [each for call in calls for each in callees.meant(project, file, call)]
    places = [(file, loop), *callees.reached(project, starts)]
    return any(guarded.updates(where, call) for where, part in places for call in descendants(part, cst.Call))  # type: ignore[arg-type]


def _target(scene: Scene, level: _Level) -> Target:
    file, first = level.file, level.statement
    here = file.location(first)
    block = _block(scene.project, file, first)
    counter = _counter(scene.project, level)
    if counter is None:
        raise refuse(f"{here}: nothing there counts the steps")
    saves = scene.finding is not None and scene.finding.kind == "checkpoint" and counter.first == 0
    number = f"({counter.text} + 1)" if saves else counter.text  # the last of N steps, so that a run's end is kept

    def write(value: Any) -> tuple[Splice, ...]:
        return (*counter.needed, *_guard(file, block, f"{number} % {value} == 0", counter.before))

    return Target(here, 1, write, f"`{short(file.text(first).splitlines()[0])}` at {here}, in every step")


def _every_step(level: _Level) -> None:
    """Raises `UsageError` where the statement is done now and then already."""
    for up in (level.statement, *level.file.ancestors(level.statement)):
        if isinstance(up, cst.If) and (paced.remainders(up.test) or paced.meets_once(level.file, up)):
            raise refuse(f"{level.file.location(up)}: it is done now and then already")
        if isinstance(up, (cst.FunctionDef, *LOOPS)) and up is not level.statement:
            break


def _block(project: Project, file: PythonFile, first: cst.CSTNode) -> list[cst.CSTNode]:
    """What comes under the condition: as little as can be. Raises `UsageError` where training cannot do without it."""
    reasons = []
    for filled in (False, True):
        block = _with_its_readers(file, first, filled)
        reason = guarded.Guarded(project, file, first, tuple(block), False, new=True).obstacle()
        if reason is None:
            if any(long_text(file, each) is not None for each in block):
                raise refuse(f"{file.location(first)}: a text in it goes over several lines")
            return block
        reasons.append(reason)
    raise refuse(reasons[0])


def _counter(project: Project, level: _Level) -> counters.Counter | None:
    block = level.file.parent(level.statement)
    around = level.loop.body if level.loop is not None else level.function.body if level.function is not None else None
    if block is not around:  # under a condition: only what counts there is known to meet the interval
        return counters.kept(level.file, block, level.statement)  # type: ignore[arg-type]
    if level.loop is not None:
        return counters.in_loop(level.file, level.loop, level.statement)
    return counters.in_function(project, level.file, level.function, level.statement) if level.function is not None else None


def _with_its_readers(file: PythonFile, first: cst.CSTNode, filled: bool) -> list[cst.CSTNode]:
    """`first` and the statements straight behind it that read what they add up or, where `filled`, fill, or what else has no value."""
    rows = list(file.parent(first).body)  # type: ignore[union-attr]
    rest = rows[rows.index(first) :]
    if (owner := _switched(first, "eval")) is not None:  # the mode goes with what is evaluated in it
        ends = [number for number, each in enumerate(rest) if _switched(each, "train") == owner]
        if not ends:
            raise refuse(f"{file.location(first)}: where `{file.text(first)}` is taken back is not known")
        block = rest[: ends[0]]  # training's mode stays in every step
        names = {name for each in block for name in given.bound(each)}
        around = file.function_around(first) or file.module
        for node in descendants(around, cst.Name):
            mine = any(file.inside(node, each) for each in block)
            if node.value in names and not mine and not given.stored(file, node) and not writers.stands_in_call(file, node, SHOWS):  # type: ignore[attr-defined,arg-type]
                raise refuse(f"{file.location(node)}: `{node.value}` is read here, and set in the evaluation")  # type: ignore[attr-defined]
        return block
    rest = rest[:MOST]
    names: set[str] = set()
    paths: set[str] = set()
    for number, each in enumerate(rest):
        reads = any(one.value in names for one in descendants(each, cst.Name))  # type: ignore[attr-defined]
        if number and not reads and not _needs_file(file, each, paths):
            return rest[:number]
        paths |= _files_of(file, each)
        names |= {name for name in given.bound(each) if not given.has_value_before(file, first, name)} | given.added_to(each)
        names |= given.filled(each) if filled else set()
    return rest


def _files_of(file: PythonFile, statement: cst.CSTNode) -> set[str]:
    """Variables and attributes that calls in `statement` may write a file by."""
    found: set[str] = set()
    for call in descendants(statement, cst.Call):
        name = callees.called_name(call)  # type: ignore[arg-type]
        owner = [call.func.value] if name in OWN_FILE and isinstance(call.func, cst.Attribute) else []  # type: ignore[attr-defined]
        handed = [arg.value for arg in call.args] if name in writers.REPORTS or name == "open" else []  # type: ignore[attr-defined]
        found |= {dotted(each) or "" for each in (*owner, *handed)}
    return found - {""}


def _needs_file(file: PythonFile, statement: cst.CSTNode, paths: set[str]) -> bool:
    """Whether the statement is a call that gives one of the files another name, copies or removes it."""
    small = sole(statement)
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or callees.called_name(call) not in NEEDS_FILE:
        return False
    handed = [arg.value for arg in call.args] + ([call.func.value] if isinstance(call.func, cst.Attribute) else [])
    return any(dotted(each) in paths for each in handed)


def _switched(statement: cst.CSTNode, mode: str) -> str | None:
    """The network of `network.eval()`, where that is the whole statement; `mode` is the method's name."""
    small = sole(statement)
    call = small.value if isinstance(small, cst.Expr) else None
    method = isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == mode and not call.args
    return dotted(call.func.value) if method else None  # type: ignore[union-attr]


def _guard(file: PythonFile, block: list[cst.CSTNode], test: str, before: str = "") -> tuple[Splice, ...]:
    """`before` and the condition in front of the block; an `if` that asks something already asks both."""
    only, indent = block[0], file.indent(block[0])
    start, end = file.span(block[0])[0], file.span(block[-1])[1]
    above = f"{before}{file.newline}{indent}" if before else ""
    if len(block) == 1 and isinstance(only, cst.If) and only.orelse is None:
        span = file.outer_span(only.test)
        weak = isinstance(only.test, (cst.IfExp, cst.Lambda, cst.NamedExpr)) or _is_or(only.test)
        left, right = ("(", ")") if weak and not only.test.lpar else ("", "")
        asked = (Splice(file.path, span[0], span[0], f"{test} and {left}"), Splice(file.path, span[1], span[1], right))
        return (Splice(file.path, start, start, above), *asked) if above else asked
    return under(file, f"{above}if {test}:", start, end, indent)


def _is_or(test: cst.BaseExpression) -> bool:
    return isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or)
