"""Do now and then what the program does in every step: statements that only watch the training come under `if step % N == 0:`."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.cadence import every_step
from trainflash.knobs.edits.statements import long_text, under
from trainflash.knobs.effects import changes, given, guarded, writers
from trainflash.knobs.kinds import Seldom
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import counters

MOST = 6  # own: statements that come under the condition together
SHOWS = ("print", "info", "debug", "write", "log", "add_scalar", "set_postfix")
OWN_FILE = ("open", "write_bytes", "write_text")  # of a path
NEEDS_FILE = {"copy", "copy2", "copyfile", "hardlink_to", "move", "remove", "rename", "replace", "symlink", "symlink_to", "unlink"}


def seldom(edit: Seldom, scene: Scene) -> tuple[Target, ...]:
    """The outermost statement that leads to the finding's line and that training can do without, with those that show what it finds.

    Raises `UsageError` where it is done now and then already, where training reads what it sets, or where nothing counts the steps.
    """
    reasons = []
    for level in reversed(every_step.of_finding(scene)):
        try:
            return (_target(scene, level),)
        except UsageError as bad:
            reasons.append(bad)
    raise reasons[0]


def _target(scene: Scene, level: every_step.Level) -> Target:
    file, first = level.file, level.statement
    here = file.location(first)
    block = _block(scene.project, file, first)
    if level.loop is None:
        _gives_nothing_empty(scene.project, file, block)
    counter = _counter(scene.project, level)
    if counter is None:
        raise refuse(f"{here}: nothing there counts the steps")
    saves = scene.finding is not None and scene.finding.kind == "checkpoint" and counter.first == 0
    number = f"({counter.text} + 1)" if saves else counter.text  # the last of N steps, so that a run's end is kept
    passes, end = _passes(scene.project, level)
    most = None if passes is None else (passes + 1) // 2  # so that it still happens twice
    if most == 1:
        raise refuse(f"{here}: it happens {'once' if passes == 1 else 'twice'} in the whole loop")

    def write(value: Any) -> tuple[Splice, ...]:
        ends = f" or {counter.text} + 1 == {end}" if saves and end and passes and value and passes % value else ""
        return (*counter.needed, *_guard(file, block, f"{number} % {value} == 0{ends}", counter.before))

    what = f"`{short(file.text(first).splitlines()[0])}` at {here}, in every step"
    return Target(here, 1, write, what, most=most)


def _gives_nothing_empty(project: Project, file: PythonFile, block: list[cst.CSTNode]) -> None:
    """Raises `UsageError` where the function goes on with what the block fills and it had just made: a mean of nothing is no number."""
    around = file.function_around(block[0])
    if around is None:
        return
    ahead, behind = file.span(block[0])[0], file.span(block[-1])[1]
    made = {name for node in descendants(around.body, cst.Assign) if file.span(node)[1] <= ahead for name in given.bound(node)}
    filled = {name for name in made if any(changes.changed(project, file, part, {name}) is not None for part in block)}
    filled |= made & {name for part in block for name in given.added_to(part)}
    for node in descendants(around.body, cst.Name):
        if node.value in filled and file.span(node)[0] >= behind and not given.stored(file, node):  # type: ignore[attr-defined,arg-type]
            line = file.statement(node) or node
            raise refuse(f"{file.location(node)}: `{short(file.text(line))}` would go on with `{node.value}` empty")  # type: ignore[attr-defined]


def _passes(project: Project, level: every_step.Level) -> tuple[int | None, str]:
    """How often the loop runs whose body holds the statement, where it says so: beyond it, nothing would be done. And where it ends, in
    words that can be read again; empty where that is not to be had."""
    loop = level.loop
    told = counters.ends(loop) if isinstance(loop, cst.For) else None
    if told is None:
        return None, ""
    stop, first = told
    more = literal(stop.right) if isinstance(stop, cst.BinaryOperation) and isinstance(stop.operator, cst.Add) else 0
    node = stop.left if isinstance(stop, cst.BinaryOperation) else stop
    found = sources.known(project, level.file, node)
    if found is None or type(found.value) is not int or type(more) is not int or found.value + more <= first:
        return None, ""
    read = first == 0 and isinstance(stop, (cst.Name, cst.Attribute, cst.Integer))
    return found.value + more - first, level.file.text(stop) if read else ""


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


def _counter(project: Project, level: every_step.Level) -> counters.Counter | None:
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
        test = f"({test})" if " or " in test else test
        weak = isinstance(only.test, (cst.IfExp, cst.Lambda, cst.NamedExpr)) or _is_or(only.test)
        left, right = ("(", ")") if weak and not only.test.lpar else ("", "")
        asked = (Splice(file.path, span[0], span[0], f"{test} and {left}"), Splice(file.path, span[1], span[1], right))
        return (Splice(file.path, start, start, above), *asked) if above else asked
    return under(file, f"{above}if {test}:", start, end, indent)


def _is_or(test: cst.BaseExpression) -> bool:
    return isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or)
