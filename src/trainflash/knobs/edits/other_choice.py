"""A function that the program chooses, by a condition or from a table, and that does more than the other choice: the other one.

`run = partial(checkpoint, use_reentrant=False) if config.remat else straight`, or `MODES[config.mode]()` with
`MODES = {"plain": nullcontext, "strict": detect_anomaly}`: nothing at the line says the function's name.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.network import recomputed
from trainflash.knobs.edits.watching import raised
from trainflash.knobs.kinds import OtherChoice
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

ANOMALY = "torch.autograd.detect_anomaly"
PLAIN = ("contextlib.nullcontext", "nullcontext")


def other_choice(edit: OtherChoice, scene: Scene) -> tuple[Target, ...]:
    """The one place where one of `calls` is chosen. Raises `UsageError` where none shows, or more than one, or it is no plain choice."""
    last = [name.rpartition(".")[2] for name in edit.calls]
    files = {file.path: file for name in last for file in scene.project.parsed(name)}
    named = [(file, node) for file in files.values() for node in _references(file, edit.calls)]
    if len(named) != 1:
        raise refuse(f"{'no place' if not named else 'more than one place'} of the program chooses {last[0]} among other functions")
    file, node = named[0]
    if set(edit.calls) & {ANOMALY}:
        raised.no_gradient_is_skipped(scene.project)
    if set(edit.calls) & set(recomputed.WRAPPERS):
        recomputed.counts_nothing(scene.project, file, None)
        if not isinstance(node, cst.Call) or recomputed.reentrant(scene.project, file, node):
            raise refuse(f"{file.location(node)}: what use_reentrant is handed may carry no gradient, and then trains nothing")
    up = file.parent(node)
    if isinstance(up, cst.IfExp):
        return (_branch(file, up, node),)
    if isinstance(up, cst.DictElement) and up.value is node:
        return (_entry(scene, file, up),)
    raise refuse(f"{file.location(node)}: `{file.text(node)}` is no choice between two functions")


def _references(file: PythonFile, calls: tuple[str, ...]) -> Iterator[cst.BaseExpression]:
    """Expressions that are one of the functions, itself or with options of its own, and no call of it."""
    for node in file.nodes:
        if not isinstance(node, (cst.Name, cst.Attribute)) or file.full_name(node) not in calls:
            continue
        up = file.parent(node)
        call = file.parent(up) if isinstance(up, cst.Arg) else up
        bound = isinstance(call, cst.Call) and isinstance(up, cst.Arg) and file.full_name(call.func) == "functools.partial"
        if bound and call.args[0] is up and all(arg.keyword is not None for arg in call.args[1:]):
            yield call
        elif isinstance(up, (cst.IfExp, cst.DictElement)):
            yield node


def _branch(file: PythonFile, choice: cst.IfExp, node: cst.CSTNode) -> Target:
    """The other branch in place of the choice."""
    if node is choice.test or any(True for _ in descendants(choice.test, (cst.Call, cst.NamedExpr))):
        raise refuse(f"{file.location(choice)}: what the choice depends on may do more than ask")
    other = choice.orelse if node is choice.body else choice.body
    if not isinstance(other, (cst.Name, cst.Attribute, cst.Lambda)):
        raise refuse(f"{file.location(choice)}: the other choice, `{file.text(other)}`, is no function by its name")
    splice = Splice(file.path, *file.outer_span(choice), file.outer_text(other))
    return Target(
        file.location(choice), None, lambda value: (splice,), f"`{file.text(choice)}` at {file.location(choice)}", "the other one"
    )


def _entry(scene: Scene, file: PythonFile, entry: cst.DictElement) -> Target:
    """The key of a plain context in place of the one that somebody typed."""
    table = file.parent(entry)
    assign = file.parent(table)
    name = dotted(assign.targets[0].target) if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None
    key = string_value(entry.key)
    plain = [
        string_value(each.key)
        for each in (table.elements if isinstance(table, cst.Dict) else ())
        if isinstance(each, cst.DictElement) and file.full_name(each.value) in PLAIN
    ]
    if name is None or key is None or len(plain) != 1 or plain[0] is None:
        raise refuse(f"{file.location(entry)}: no entry of the table does nothing")
    asked = [
        (where, part.slice.value)
        for where in scene.project.parsed(name.rpartition(".")[2])
        for node in where.nodes
        if isinstance(node, cst.Subscript) and dotted(node.value) == name and len(node.slice) == 1
        for part in node.slice
        if isinstance(part.slice, cst.Index)
    ]
    if len(asked) != 1:
        raise refuse(f"{file.location(entry)}: the table is asked at {len(asked)} places")
    where, index = asked[0]
    try:
        source = sources.Resolver(scene.project, key).source(where, index)
    except UsageError as bad:
        raise refuse(f"{where.location(index)}: which entry is asked for is not known: {bad.message}") from None
    if source is None or source.write is None or source.value != key or source.readers:
        raise refuse(f"{where.location(index)}: the key is nothing typed for this alone")
    typing, instead = source.write, plain[0]
    what = f"`{where.text(index)}` at {where.location(index)}, from {source.shown}"
    return Target(where.location(index), key, lambda value: typing(instead), what, instead)
