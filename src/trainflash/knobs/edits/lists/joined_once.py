"""What grows by one part after the other, and is copied whole each time: parts are collected and joined once, or neighbours first.

`x = torch.cat([x, part])` in a loop becomes a list and one call behind the loop, `sum(lists, [])` a chain, and `reduce(f, parts)` of a
function of the program's that joins its two arguments goes in pairs. Joining copies values and computes none, so all of them stay.
"""

from __future__ import annotations

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.lists.pairwise import JOINS, joins
from trainflash.knobs.edits.statements import above_in_module, behind, kept_comments
from trainflash.knobs.edits.which_loop import near
from trainflash.knobs.effects.lasting_parts import changed_later
from trainflash.knobs.kinds import JoinedOnce
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

MAKERS = ("array", "cat", "empty", "full", "ones", "tensor", "zeros")  # functions that make a tensor or an array
READING = {"EOFError", "FileNotFoundError", "IOError", "JSONDecodeError", "KeyError", "OSError", "UnicodeDecodeError"}  # none of joining
REDUCE = ("functools.reduce", "reduce")
PAIRED = '''def paired(join, parts):
    """As functools.reduce, neighbours first: a part is copied once for each doubling, not once for each part behind it."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [join(left, right) for left, right in zip(parts[::2], parts[1::2])]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


'''

Change = tuple[list[Splice], str]


def joined_once(edit: JoinedOnce, scene: Scene) -> tuple[Target, ...]:
    """The first such place near the line. Raises `UsageError` where none is there, or parts may be changed before they are joined."""
    file, place = scene.source("joins")
    reasons: list[UsageError] = []
    for where, node in (*near(scene.project, file, place.line, (cst.Assign, cst.Call)), *_by_operator(scene.project, file, place)):
        try:
            found = _grown(scene.project, where, node) if isinstance(node, cst.Assign) else _folded(scene.project, where, node)  # type: ignore[arg-type]
        except UsageError as bad:
            reasons.append(bad)
            continue
        if found is not None:
            splices, label = found
            kept = tuple(kept_comments(where, splices))
            at = where.location(node)
            return (Target(at, None, lambda value: kept, f"`{short(where.text(node))}` at {at}", label),)  # noqa: B023 - returned at once
    raise reasons[0] if reasons else refuse(f"{place}: nothing grows by one part after the other near this line")


def _by_operator(project: Project, file: PythonFile, place: Location) -> list[tuple[PythonFile, cst.CSTNode]]:
    """Calls that add things up, where the line is that of an addition: such a method is called by no name."""
    function = file.function_at(place)
    if function is None or function.name.value != "__add__":
        return []
    return project.each(("reduce",), lambda where, node: isinstance(node, cst.Call) and where.full_name(node.func) in REDUCE)


# --- in a loop


def _grown(project: Project, file: PythonFile, assign: cst.Assign) -> Change | None:
    """`x = torch.cat([x, part])` in a loop; None for any other statement."""
    call, name = assign.value, assign.targets[0].target
    if len(assign.targets) != 1 or not isinstance(name, cst.Name) or not isinstance(call, cst.Call) or not call.args:
        return None
    both = call.args[0].value
    if file.full_name(call.func) not in JOINS or not isinstance(both, (cst.List, cst.Tuple)) or len(both.elements) != 2:
        return None
    first, part = (each.value for each in both.elements)
    line = file.statement(assign)
    if dotted(first) != name.value or sole(line) is not assign or line is None:
        return None
    here = file.location(assign)
    if any(literal(each.value) is None and not isinstance(each.value, cst.Integer) for each in call.args[1:]):
        raise refuse(f"{here}: the dimension is no number that is written out")
    loop = _loop(file, assign, name)
    _ends_plainly(file, assign, loop)
    _asked_elsewhere(file, name, loop)
    _stay(project, file, loop, part)
    parts = f"{name.value}_parts"
    if any(each.value == parts for each in descendants(file.module, cst.Name)):  # type: ignore[attr-defined]
        raise refuse(f"{here}: the name {parts} is used already")
    inner = file.indent(loop)
    joined = f"{name.value} = {file.text(call.func)}({', '.join([parts, *map(file.text, call.args[1:])])})".replace(",)", ")")
    start, last = file.span(loop)[0], _last(loop)
    return [
        Splice(file.path, start, start, f"{parts} = [{name.value}]{file.newline}{inner}"),
        Splice(file.path, *file.span(assign), f"{parts}.append({file.text(part)})"),
        behind(file, last, inner, _joined(file, name, assign, joined)),
    ], "once behind the loop"


def _loop(file: PythonFile, assign: cst.Assign, name: cst.Name) -> cst.For | cst.While:
    """The outermost loop in which nothing else asks for what grows."""
    found = None
    for loop in file.loops_around(assign):
        uses = [each for each in descendants(loop, cst.Name) if each.value == name.value]  # type: ignore[attr-defined]
        if len(uses) != 2 or loop.orelse is not None:
            break
        found = loop
    if found is None:
        raise refuse(f"{file.location(assign)}: what grows is asked for within the loop, or there is none")
    if not isinstance(file.parent(found), (cst.IndentedBlock, cst.Module)):
        raise refuse(f"{file.location(found)}: the loop is part of a larger statement")
    function = file.function_around(assign)
    if function is not None and any(
        isinstance(each, (cst.Global, cst.Nonlocal)) for each in descendants(function, (cst.Global, cst.Nonlocal))
    ):
        raise refuse(f"{file.location(assign)}: the variable may be one of another function")
    if next(descendants(found, cst.Yield), None) is not None:
        raise refuse(f"{file.location(found)}: the loop hands something over before it ends")
    return found


def _stay(project: Project, file: PythonFile, loop: cst.For | cst.While, part: cst.BaseExpression) -> None:
    """Raises `UsageError` where something in the loop changes what was collected, which is copied only behind it."""
    change = changed_later(project, file, loop, part)
    if change is not None:
        where, node = change
        raise refuse(f"{where.location(node)}: `{short(where.text(node))}` may change a part before it is joined")


def _ends_plainly(file: PythonFile, assign: cst.Assign, loop: cst.CSTNode) -> None:
    """Raises `UsageError` where an error may end the loop and the program goes on, with what has grown so far."""
    for up in file.ancestors(assign):
        if isinstance(up, cst.FunctionDef):
            return
        if isinstance(up, (cst.Try, cst.TryStar)) and file.inside(assign, up.body):
            inner = file.inside(up, loop) and up.finalbody is None
            caught = {(dotted(each.type) or "").split(".")[-1] if each.type is not None else "" for each in up.handlers}
            if not inner or not caught <= READING:
                raise refuse(f"{file.location(up)}: an error is caught here, behind which the program goes on with what has grown")
        calls = [item.item for item in up.items if isinstance(item.item, cst.Call)] if isinstance(up, cst.With) else []
        if any((file.full_name(call.func) or "").split(".")[-1] == "suppress" for call in calls):
            raise refuse(f"{file.location(up)}: errors are passed over here, and the program goes on with what has grown")


def _asked_elsewhere(file: PythonFile, name: cst.Name, loop: cst.CSTNode) -> None:
    """Raises `UsageError` where a function that the loop may call reads the variable, too."""
    scope = file.scope(name)
    for each in scope[name.value] if scope is not None else ():
        for access in getattr(each, "references", ()):
            if file.function_around(access.node) is not file.function_around(loop):
                raise refuse(f"{file.location(access.node)}: another function asks for `{name.value}`")


def _joined(file: PythonFile, name: cst.Name, assign: cst.Assign, joined: str) -> str:
    """What stands behind the loop. Where it has no turn, what was there stays itself, if that may be anything but a new tensor."""
    full = file.full_name(assign.value.func) or ""  # type: ignore[attr-defined]
    owner = file.function_around(assign) or file.module
    begun = [value for value in given_to(owner, name.value) if value is not assign.value]
    new = bool(begun) and full.split(".")[-1] != "vstack"  # which makes a row of a vector
    for value in begun:
        made = file.full_name(value.func) or "" if isinstance(value, cst.Call) else ""
        new = new and made.split(".")[0] in ("torch", "numpy") and made.split(".")[-1] in MAKERS
    return joined if new else f"{joined} if len({name.value}_parts) > 1 else {name.value}"


def _last(node: cst.CSTNode) -> cst.CSTNode:
    """The last statement in a compound one."""
    while True:
        inner = getattr(node, "finalbody", None) or getattr(node, "orelse", None) or (getattr(node, "handlers", None) or [None])[-1]
        body = (inner or node).body  # type: ignore[attr-defined]
        statements = getattr(body, "body", None)
        if not statements:
            return node
        node = statements[-1]
        if isinstance(node, (cst.SimpleStatementLine, cst.BaseSmallStatement)):
            return node


# --- by a function


def _folded(project: Project, file: PythonFile, call: cst.Call) -> Change | None:
    """`reduce(f, parts)` and `sum(lists, [])`; None for any other call."""
    called, given = file.full_name(call.func), [arg.value for arg in call.args]
    if any(arg.star for arg in call.args):
        return None
    if called == "sum" and len(given) == 2 and isinstance(given[1], cst.List) and not given[1].elements:
        spelled, needed = imports.reach(file, "itertools", "chain")
        lists = file.text(given[0]) if isinstance(given[0], cst.GeneratorExp) else file.outer_text(given[0])
        text = f"list({spelled}.from_iterable({lists}))"
        return [*needed, Splice(file.path, *file.span(call), text)], "one chain"
    if called not in REDUCE or len(given) not in (2, 3) or any(arg.keyword is not None for arg in call.args):
        return None
    here = file.location(call)
    joins(project, file, given[0], here)
    if any(each.value == "paired" for each in descendants(file.module, cst.Name)):  # type: ignore[attr-defined]
        raise refuse(f"{here}: the name paired is used already")
    parts = file.outer_text(given[1])
    parts = parts if len(given) == 2 else f"[{file.text(given[2])}, *{parts}]"
    text = f"paired({file.text(given[0])}, {parts})"
    return [above_in_module(file, call, PAIRED), Splice(file.path, *file.span(call), text)], "neighbours first"
