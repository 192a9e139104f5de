"""Ask first, compute then: work whose results only an `if` behind it uses comes under that condition.

`accuracy = evaluate(model)` and `if step % 100 == 0: print(accuracy)` compute in every step what is shown in one of a hundred. Where a part
of the condition asks for the result itself, the other parts are asked first. Nothing else changes: what is used is computed as before,
where it is used.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.cadence import every_step
from trainflash.knobs.edits.statements import long_text, under
from trainflash.knobs.effects import given, guarded, quiet
from trainflash.knobs.kinds import AskedFirst
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import conjuncts, plain_names, refuse, short
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants, dotted, own_field, parameter_names, sole, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

ASKS = {"abs", "all", "any", "bool", "float", "get", "hasattr", "int", "isinstance", "len", "max", "min", "round", "startswith"}
TAKES = {"anext", "input", "next", "pop", "popitem", "popleft", "read", "readline", "readlines", "recv"}
CHANGES = (cst.AugAssign, cst.Del, cst.Global, cst.Nonlocal, cst.Yield, cst.Await, cst.NamedExpr, cst.With, cst.Raise)


def asked_first(edit: AskedFirst, scene: Scene) -> tuple[Target, ...]:
    """The statement nearest to the finding's line whose results only the condition behind it uses. Raises `UsageError` without one."""
    reasons = []
    for level in every_step.of_finding(scene):
        try:
            return (_target(scene.project, level.file, level.statement),)
        except UsageError as bad:
            reasons.append(bad)
    raise reasons[-1]


def _target(project: Project, file: PythonFile, first: cst.CSTNode) -> Target:
    here = file.location(first)
    work, asking = _work(file, first)
    names = {name for each in work for name in given.bound(each)} | _fields(work)
    parts = conjuncts(asking.test)
    asked = [each for each in parts if not _mentions(each, names)]
    if not asked:
        raise refuse(f"{file.location(asking)}: all of the condition depends on what is computed")
    if any(long_text(file, each) is not None for each in (*work, asking)):
        raise refuse(f"{here}: a text in it goes over several lines")
    late = [each for each in parts if each not in asked]
    if asking.orelse is not None and (late or _mentions(asking.orelse, names)):
        raise refuse(f"{file.location(asking)}: something is done otherwise, too, for which it may be computed")
    if not all(_only_asks(project, file, each) for each in asked):
        raise refuse(f"{file.location(asking)}: `{short(file.text(asking.test))}` may do more than ask")
    before = given.read_before_set(file, work, _set_before(file, first))
    if before is not None:
        raise refuse(f"{file.location(before)}: `{before.value}` is read here as the step before left it")
    told = (each for line in work for each in descendants(line, cst.Attribute) if dotted(each) in names)
    kept = next((each for each in told if not given.stored(file, each)), None)  # type: ignore[arg-type]
    if kept is not None:
        raise refuse(f"{file.location(kept)}: `{file.text(kept)}` is read here as the step before left it")
    reason = guarded.Guarded(project, file, first, tuple(work), False, new=True, readers=(asking.body, *late), exact=True).obstacle()
    if reason is not None:
        raise refuse(reason)
    found = quiet.Quiet(project).look(file, work)
    if found.told:
        raise refuse(found.told)
    splices = _both(file, work, asking, asked, late) if late else _moved(file, work, asking)
    target = Target(here, None, lambda value: splices, f"`{short(file.text(first).splitlines()[0])}` at {here}", "under its condition")
    return replace(target, risk="order", because=found.drawn) if found.drawn else target


def _work(file: PythonFile, first: cst.CSTNode) -> tuple[list[cst.CSTNode], cst.If]:
    """Assignments from `first` on, and the `if` straight behind them."""
    block = file.parent(first)
    rows = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
    work: list[cst.CSTNode] = []
    for each in rows[rows.index(first) :] if first in rows else ():  # type: ignore[arg-type]
        if isinstance(each, cst.If) and work and isinstance(each.body, cst.IndentedBlock):
            return work, each
        small = sole(each)
        targets = targets_of(small) if isinstance(small, (cst.Assign, cst.AnnAssign)) else []
        plain = bool(targets) and all(plain_names(target) is not None or own_field(target) is not None for target in targets)
        if not plain:
            break
        for call in descendants(each, cst.Call):
            if callees.called_name(call) in TAKES:  # type: ignore[arg-type]
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` takes something that would be there the next time")
        work.append(each)
    raise refuse(f"{file.location(first)}: what is computed there is not for a condition straight behind it")


def _fields(work: list[cst.CSTNode]) -> set[str]:
    """Attributes of `self` that the work sets, such as `self.accuracy`."""
    targets = [target for each in work for target in targets_of(sole(each))]  # type: ignore[arg-type]
    return {f"self.{name}" for target in targets if (name := own_field(target)) is not None}


def _set_before(file: PythonFile, first: cst.CSTNode) -> set[str]:
    """Variables that surely get a value in front of `first` in the same round of its loop, or the same call of its function."""
    known: set[str] = set()
    below, function = first, file.function_around(first)
    for up in file.ancestors(first):
        if isinstance(up, (cst.IndentedBlock, cst.Module)):
            rows = list(up.body)
            known |= {name for row in rows[: rows.index(below)] if sole(row) is not None for name in given.bound(row)}  # type: ignore[arg-type]
        if isinstance(up, LOOPS):
            return known | (given.unpacked(up.target) if isinstance(up, cst.For) else set())
        if up is function:
            return known | parameter_names(up)
        below = up
    return known


def _mentions(node: cst.CSTNode, names: set[str]) -> bool:
    return any(dotted(each) in names for each in descendants(node, (cst.Name, cst.Attribute)))


def _only_asks(project: Project, file: PythonFile, test: cst.BaseExpression) -> bool:
    """Whether a part of a condition may be asked sooner, and although another part did not hold: it changes nothing and needs nothing."""
    if any(True for _ in descendants(test, (cst.Subscript, cst.NamedExpr, cst.Await, cst.Yield))):
        return False
    starts = []
    for call in descendants(test, cst.Call):
        meant = list(callees.meant(project, file, call))  # type: ignore[arg-type]
        if not meant and callees.called_name(call) not in ASKS:  # type: ignore[arg-type]
            return False
        starts += meant
    for where, function in callees.reached(project, starts):
        if any(True for _ in descendants(function.body, CHANGES)):
            return False
        if any(plain_names(target.target) is None for target in descendants(function.body, cst.AssignTarget)):  # type: ignore[attr-defined]
            return False
        for call in descendants(function.body, cst.Call):
            if callees.called_name(call) not in ASKS and not any(True for _ in callees.meant(project, where, call)):  # type: ignore[arg-type]
                return False
    return True


# Writing --------------------------------------------------------------------------------------------------------------------------


def _moved(file: PythonFile, work: list[cst.CSTNode], asking: cst.If) -> tuple[Splice, ...]:
    """The line of the condition in front of the work, which becomes the first of what it guards."""
    indent = file.indent(work[0])
    start, begin = file.span(work[0])[0], file.span(asking)[0]
    inside = file.span(asking.body.body[0])[0]  # the first statement's text, behind its indent
    header_end = file.raw.find(b"\n", file.span(asking.test)[1])
    first_line = file.raw.rfind(b"\n", 0, begin) + 1
    header = file.raw[begin:header_end].decode("utf-8").rstrip("\r")
    if header_end < 0 or header_end > inside:
        raise refuse(f"{file.location(asking)}: the condition and what it guards share a line")
    end = file.span(work[-1])[1]
    return (*under(file, header, start, end, indent), Splice(file.path, first_line, header_end + 1, ""))


def _both(
    file: PythonFile, work: list[cst.CSTNode], asking: cst.If, asked: list[cst.BaseExpression], late: list[cst.BaseExpression]
) -> tuple[Splice, ...]:
    """A condition of what can be asked first, and in it the work and the rest of the condition."""
    indent = file.indent(work[0])
    start, end = file.span(work[0])[0], file.span(asking)[1]
    if "\n" in file.outer_text(asking.test):
        raise refuse(f"{file.location(asking)}: the condition goes over several lines")
    header = f"if {' and '.join(map(file.outer_text, asked))}:"
    rest = Splice(file.path, *file.outer_span(asking.test), " and ".join(map(file.outer_text, late)))
    return (*under(file, header, start, end, indent), rest)
