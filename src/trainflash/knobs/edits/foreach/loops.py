"""A loop that works on one tensor after another, such as parameters and their averages: operations on lists of all of them.

The statements at the end of a turn that are understood as operations on its tensors go behind the loop, which then only collects them. That
gives the same numbers where turns do not share tensors, draw no random numbers there, and read nothing that such a statement set.
"""

from __future__ import annotations

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.foreach import apart, turns
from trainflash.knobs.edits.foreach.inlined import inlined
from trainflash.knobs.edits.foreach.rows import Rows
from trainflash.knobs.edits.foreach.turns import Turns
from trainflash.knobs.edits.statements import kept_comments, top, whole_lines
from trainflash.knobs.edits.which_loop import near
from trainflash.knobs.kinds import ForeachOperations
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice, edited

# Measured, one thread, an Adam step whose results go into new lists, 64 tensors: of 1,024 elements 1.45 times as fast as one after the
# other, of 4,096 0.81 times, of 16,384 0.41 times. On a CPU only the calls from Python are saved, and each list of results goes through
# memory.
MOST_ELEMENTS = 8192
NOTHING = "no loop over tensors is here whose turns could be made at once"


def foreach_operations(edit: ForeachOperations, scene: Scene) -> tuple[Target, ...]:
    """The innermost loop at the line, else those of its function or of the function that it calls. Raises `UsageError` without one."""
    file, place = scene.source("does the work")
    updates = scene.facts.get("updates")
    if scene.facts.get("device") == "cpu" and updates is not None and updates.elements > MOST_ELEMENTS * updates.tensors:
        mean = updates.elements // updates.tensors
        raise refuse(f"{place}: on a CPU, lists of tensors of {mean:,} elements in the mean take longer than one after the other")
    reasons: list[UsageError] = []
    for where, node in near(scene.project, file, place.line, (cst.For,)):
        try:
            splices = _at_once(scene.project, where, node)
        except UsageError as bad:
            reasons.append(bad)
            try:
                splices = _written_out(scene, where, node)
            except UsageError:
                continue
        at = where.location(node)
        return (Target(at, None, lambda value: splices, f"the loop at {at}", "lists"),)  # noqa: B023 - returned at once
    raise reasons[0] if reasons else refuse(f"{place}: {NOTHING}")


def _written_out(scene: Scene, file: PythonFile, node: cst.For) -> tuple[Splice, ...]:
    """The same where a function of the file does the work of a turn: its statements move into the loop first."""
    after, loop = inlined(scene.project, file, node)
    return (Splice(file.path, 0, len(file.raw), edited(after.raw, _at_once(scene.project, after, loop)).decode("utf-8")),)


def _at_once(project: Project, file: PythonFile, node: cst.For) -> tuple[Splice, ...]:
    here = file.location(node)
    if node.asynchronous is not None or node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
        raise refuse(f"{here}: {NOTHING}")
    apart.runs_through(file, node)
    keys = apart.keys(file, node)
    spelled, needed = imports.reach(file, "torch", "_foreach_mul_")
    if spelled == "_foreach_mul_":
        raise refuse(f"{here}: torch is not imported as a module")
    torch = spelled.removesuffix("_foreach_mul_")
    around = file.function_around(node)
    taken = frozenset(each.value for each in descendants(around or file.module, cst.Name))  # type: ignore[attr-defined]
    lists = turns.known_lists(file, node)
    reason: UsageError | None = None
    for loop in turns.splits(file, node):
        known = turns.known_tensors(loop, lists)
        rows = Rows(file, torch, turns.own_names(loop), keys, taken, known, lists, unsteady=turns.set_in_front(loop))
        try:
            written = rows.of(loop.tail, "")
            apart.reads_no_other(loop, rows)
        except UsageError as bad:
            reason = bad
            continue
        if rows.operations < max(1, rows.loops):
            break
        if len(written) > 1 or written[0].count("_foreach_") > 1 or "[" in written[0]:  # else each tensor has its turn as before
            apart.each_once(project, file, node)
        return (*needed, *_written(loop, rows, written))
    raise reason or refuse(f"{here}: {NOTHING}")


def _written(loop: Turns, rows: Rows, written: list[str]) -> list[Splice]:
    file, node = loop.file, loop.node
    indent, deeper = file.indent(node), file.module.default_indent
    old = whole_lines(file, *file.span(node))
    lists = _listed(loop, rows) if loop.block is node.body and not loop.stay else None
    first = next(iter(rows.collected.values()))
    written = [f"if {first}:", *(f"{deeper}{row}" for row in written)]
    if lists is not None:
        return kept_comments(file, [Splice(file.path, old.start, old.end, _text(file, indent, [*lists, *written]))])
    begun = ", ".join(rows.collected.values()) + " = " + ", ".join("[]" for _ in rows.collected)
    inner = file.indent(loop.tail[0])
    start = whole_lines(file, *[top(file, loop.tail[0])] * 2).start
    appended = [f"{held}.append({text})" for text, held in rows.collected.items()]
    return [
        Splice(file.path, old.start, old.start, _text(file, indent, [begun])),
        *kept_comments(file, [Splice(file.path, start, old.end, _text(file, inner, appended) + _text(file, indent, written))]),
    ]


def _listed(loop: Turns, rows: Rows) -> list[str] | None:
    """The lists, where nothing stays in the loop and each is made of one thing that it goes over; None for anything else."""
    file, parts = loop.file, turns.zipped(loop.node)
    targets = [each.value for each in loop.node.target.elements] if isinstance(loop.node.target, cst.Tuple) else [loop.node.target]
    whole = loop.node.iter
    options = isinstance(whole, cst.Call) and dotted(whole.func) == "zip" and any(arg.keyword is not None for arg in whole.args)
    if len(parts) != len(targets) or options or any(not isinstance(target, cst.Name) for target in targets):
        return None
    if len(parts) > 1 and not all(isinstance(part, cst.Call) and callees.called_name(part) in apart.UNIQUE for part in parts):
        return None  # they may be of different lengths
    around, names = file.function_around(loop.node) or file.module, {target.value for target in targets}  # type: ignore[attr-defined]
    told: list[cst.Name] = [each for each in descendants(around, cst.Name) if each.value in names and is_name(file, each)]  # type: ignore[attr-defined,arg-type,misc]
    if any(not file.inside(each, loop.node) and not apart.begins_anew(file, each) for each in told):
        return None  # what the last turn leaves is used
    if isinstance(loop.node.body, cst.IndentedBlock) and loop.node.body.header.comment is not None:
        return None
    found: list[str] = []
    for part, target in zip(parts, targets, strict=True):
        name = target.value  # type: ignore[attr-defined]
        if isinstance(part, cst.Call) and callees.called_name(part) not in turns.OF_TENSORS:
            return None
        own = {text: held for text, held in rows.collected.items() if text.split(".")[0] == name}
        source = file.outer_text(part)
        if name in own and len(own) > 1:
            found.append(f"{own[name]} = list({source})")
            source = own.pop(name)
        elif len(own) > 1:
            return None
        found += [f"{held} = list({source})" if text == name else f"{held} = [{text} for {name} in {source}]" for text, held in own.items()]
    return found if len(found) == len(rows.collected) else None


def _text(file: PythonFile, indent: str, rows: list[str]) -> str:
    return "".join(f"{indent}{row}{file.newline}" for row in rows)
