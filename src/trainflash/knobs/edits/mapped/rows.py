"""A loop that does the same to each row of a tensor: `torch.vmap`, which runs every operation once for all rows.

That is the same computation, rounded otherwise where a product of matrices has another shape. What torch cannot map, such as a draw of
random numbers, a decision on a row's numbers or `.item()`, fails loudly; what it would silently do once instead of for each row, such as
counting calls, is looked for in the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.mapped import joins, masks
from trainflash.knobs.edits.mapped.alone import called_only_gives, only_gives
from trainflash.knobs.edits.mapped.over import Over, over, together
from trainflash.knobs.edits.statements import kept_comments, top, whole_lines
from trainflash.knobs.edits.which_loop import is_map, near
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import MappedRows
from trainflash.knobs.reading.expressions import free_name, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

LOOPS = (cst.For, cst.ListComp, cst.GeneratorExp, cst.Call)
MAPPED = ("one_row", "one_part", "one_piece")  # names for what is done to one row, where one is needed


def mapped_rows(edit: MappedRows, scene: Scene) -> tuple[Target, ...]:
    """The innermost loop over rows at the line, or one that ends with it, else one near it.

    Raises `UsageError` with the reason where none can be mapped.
    """
    file, place = scene.source("does the work")
    reasons: list[UsageError] = []
    for where, inner in near(scene.project, file, place.line, LOOPS):
        for node in reversed(list(_nest(where, inner))):
            if isinstance(node, cst.Call) and not is_map(where, node):
                continue
            try:
                splices = _at_once(scene, where, node)
            except UsageError as bad:
                reasons.append(bad)
                continue
            at = where.location(node)
            return (Target(at, None, lambda value: splices, f"the loop at {at}", "torch.vmap"),)  # noqa: B023 - returned at once
    raise reasons[0] if reasons else refuse(f"{place}: no loop over rows is here")


def _nest(file: PythonFile, loop: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The loop, and the loops around it whose turns end with it."""
    yield loop
    around = file.parent(file.parent(loop)) if isinstance(loop, cst.For) else None
    if isinstance(around, cst.For) and isinstance(around.body, cst.IndentedBlock) and around.body.body[-1] is loop:
        yield from _nest(file, around)


def _at_once(scene: Scene, file: PythonFile, node: cst.CSTNode) -> tuple[Splice, ...]:
    if isinstance(node, cst.Call):
        return _of_map(scene, file, node)
    turns = joins.turns(file, node)
    rows = over(scene.project, file, turns.clause.target, turns.clause.iter, turns.parts)
    rows = replace(rows, renamed=(*rows.renamed, *masks.filled(file, turns.parts, rows)))
    only_gives(scene.project, file, turns)
    vmap, needed = imports.reach(file, "torch", "vmap")
    needed = tuple(dict.fromkeys((*needed, *rows.needed)))
    function = _direct(file, turns, rows)
    names = ", ".join(row.name for row in rows.rows)
    if turns.front:
        function = free_name(file, node, *MAPPED)
    elif function is None:
        function = f"lambda {names}: {_results(file, turns, rows, '({})')}"
    mapped = _mapped(vmap, function, rows, turns.join)
    if turns.place is not None:
        return (*needed, *kept_comments(file, (Splice(file.path, *file.span(turns.place), mapped), *turns.beside)))
    above, head, behind = _comments(file, node)  # type: ignore[arg-type]
    front, indent = "", file.indent(node)
    if turns.front:
        front, head = _function(file, turns, rows, f"{indent}def {function}({names}):{head}"), ""
    old = whole_lines(file, top(file, node), file.span(node)[1])
    text = f"{above}{front}{indent}{turns.into}{mapped}{head}{behind}{file.newline}"
    return (*needed, *kept_comments(file, (Splice(file.path, old.start, old.end, text), *turns.beside)))


def _of_map(scene: Scene, file: PythonFile, call: cst.Call) -> tuple[Splice, ...]:
    """`torch.stack(list(map(f, x, y)))` as `torch.vmap(f)(x, y)`."""
    here, function = file.location(call), call.args[0].value
    if any(arg.keyword is not None or arg.star for arg in call.args):
        raise refuse(f"{here}: `{short(file.text(call))}` is not read here")
    place, join, beside = joins.gathered(file, call)
    rows = together(scene.project, file, here, [(f"row_{number}", arg.value) for number, arg in enumerate(call.args[1:])])
    called_only_gives(scene.project, file, function)
    vmap, needed = imports.reach(file, "torch", "vmap")
    return (*needed, *kept_comments(file, (Splice(file.path, *file.span(place), _mapped(vmap, file.text(function), rows, join)), *beside)))


def _mapped(vmap: str, function: str, rows: Over, join: joins.Join) -> str:
    dims = [row.dim for row in rows.rows]
    options = "" if not any(dims) else f", in_dims={dims[0] if len(set(dims)) == 1 else tuple(dims)}"
    options += f", out_dims={join.out}" if join.out else ""
    return f"{vmap}({function}{options})({', '.join(row.of for row in rows.rows)}){join.behind}"


def _comments(file: PythonFile, node: cst.For) -> tuple[str, str, str]:
    """The comments above the loop, behind its head and behind its result."""
    above = file.raw[file.raw.rfind(b"\n", 0, top(file, node)) + 1 : file.raw.rfind(b"\n", 0, file.span(node)[0]) + 1].decode("utf-8")
    body: cst.IndentedBlock = node.body  # type: ignore[assignment]
    last = body.body[-1]
    behind = [body.header.comment, last.trailing_whitespace.comment if isinstance(last, cst.SimpleStatementLine) else None]
    return above, *(f"  {each.value}" if each is not None else "" for each in behind)  # type: ignore[return-value]


def _function(file: PythonFile, turns: joins.Turns, rows: Over, head: str) -> str:
    """The statements of a turn as a function that returns its result; `head` is its first line."""
    first, last = turns.front[0], turns.front[-1]
    inner = file.indent(first)
    start = file.raw.rfind(b"\n", 0, top(file, first)) + 1
    end = file.raw.find(b"\n", file.span(last)[1])
    nl = file.newline
    begin = f"{inner}{turns.begun} = 0{nl}" if turns.begun else ""
    return f"{head}{nl}{begin}{rows.between(file, start, end)}{nl}{inner}return {_results(file, turns, rows)}{nl}{nl}"


def _results(file: PythonFile, turns: joins.Turns, rows: Over, several: str = "{}") -> str:
    """The text of what a turn gives, several results as `several` says."""
    texts = [rows.text(file, each) for each in turns.results]
    return texts[0] if len(texts) == 1 else several.format(", ".join(texts))


def _direct(file: PythonFile, turns: joins.Turns, rows: Over) -> str | None:
    """The function itself, where a turn only calls it with its rows in their order."""
    call, names = turns.results[0], [row.name for row in rows.rows]
    if (
        turns.front
        or len(turns.results) > 1
        or not isinstance(call, cst.Call)
        or dotted(call.func) is None
        or changes.root(call.func) in names
    ):
        return None
    given = [rows.text(file, arg.value) for arg in call.args if arg.keyword is None and not arg.star]
    return file.text(call.func) if given == names and len(given) == len(call.args) else None
