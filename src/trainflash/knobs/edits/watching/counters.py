"""A counter of operations around the same block in each step: the first one's numbers are kept, and later blocks run without one."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import above_in_module, behind
from trainflash.knobs.edits.watching.profiles import read_elsewhere
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import CountedOnce
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import free_name, is_name, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, keyword, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

TOTALS = ("get_total_flops", "get_flop_counts", "get_table")
HELD = "COUNTED"
BINDS = (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For)
LEAVES = (cst.Return, cst.Raise, cst.Continue, cst.Break)


def counted_once(edit: CountedOnce, scene: Scene) -> tuple[Target, ...]:
    """`nullcontext` of the first counter in place of one more. Raises `UsageError` where a later block may count something else."""
    file, call = the_call(edit, scene)
    here = file.location(call)
    item = file.parent(call)
    block, bound = file.parent(item), item.asname.name if isinstance(item, cst.WithItem) and item.asname is not None else None
    if not isinstance(block, cst.With) or not isinstance(bound, cst.Name):
        raise refuse(f"{here}: the counter is not that of a `with` block with a name of its own")
    if (display := keyword(call, "display")) is None or literal(display.value) is not False:
        raise refuse(f"{here}: it prints a table behind each block")
    function = file.function_around(call)
    if function is not None and len(callers.results(scene.project, file, function)) > 1:
        raise refuse(f"{here}: {function.name.value} is called at several places, which may count different blocks")
    if function is None and read_elsewhere(scene.project, file, bound.value):
        raise refuse(f"{here}: another file may read what {bound.value} counted")
    _only_totals(file, block, bound, function or file.module)
    _takes_the_same_each_time(file, block)
    *_, last = block.body.body
    if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], LEAVES):
        raise refuse(f"{file.location(last)}: the block is left before its end, where the counter would be kept")
    held = free_name(file, call, HELD)
    spelled, needed = imports.reach(file, "contextlib", "nullcontext")
    start = file.span(call)[0]
    splices = (
        *needed,
        above_in_module(file, call, f"{held} = []  # the counter of the first block: later ones take the same operations\n\n\n"),
        Splice(file.path, start, start, f"{spelled}({held}[0]) if {held} else "),
        behind(file, last, file.indent(last), f"{held}[:] = [{bound.value}]"),
    )
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "the first count kept"),)


def _takes_the_same_each_time(file: PythonFile, block: cst.With) -> None:
    """Raises `UsageError` where a condition in the block asks for what changes from one step to the next."""
    loops = list(file.loops_around(block))
    within = loops[-1] if loops else block
    changing = {name for node in descendants(within, BINDS) for target in targets_of(node) for name in _names(target)}
    for node in descendants(block.body, (cst.If, cst.IfExp, cst.While)):
        asked = {each.value for each in descendants(node.test, cst.Name)}  # type: ignore[attr-defined]
        if asked & changing or isinstance(node, cst.While) or any(True for _ in descendants(node.test, cst.Call)):
            raise refuse(f"{file.location(node)}: a condition decides here which operations are taken, and later blocks may take others")


def _names(target: cst.BaseExpression) -> set[str]:
    return {each.value for each in descendants(target, cst.Name)} - {"self"}  # type: ignore[attr-defined]


def _only_totals(file: PythonFile, block: cst.With, bound: cst.Name, owner: cst.CSTNode) -> None:
    """Raises `UsageError` where the counter is asked for anything but its totals, and where it is asked before its block ends."""
    for node in descendants(owner, cst.Name):
        if node.value != bound.value or node is bound or not is_name(file, node):  # type: ignore[attr-defined,arg-type]
            continue
        up = file.parent(node)
        asked = isinstance(up, cst.Attribute) and up.attr.value in TOTALS and isinstance(file.parent(up), cst.Call)
        if not asked or block.body in file.ancestors(node):
            raise refuse(f"{file.location(node)}: {bound.value} is used here for more than its totals, or within its block")
