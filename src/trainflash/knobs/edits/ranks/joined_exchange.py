"""A collective for each tensor of a loop: one for all of them of a type together, of a tensor that `torch.cat` makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import argument, taken_away, whole_lines
from trainflash.knobs.kinds import JoinedExchange
from trainflash.knobs.reading.expressions import given_to, is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

COLLECTIVES = ("torch.distributed.all_reduce", "torch.distributed.broadcast")
OF_PARAMETERS = ("parameters", "named_parameters", "buffers", "named_buffers", "values", "items")
LISTS = (cst.List, cst.ListComp, cst.Tuple)
LISTING = ("list", "tuple", "sorted")
OWNED = (".grad", ".data")  # parts of a parameter that need no gradient themselves
PART = re.compile(r"[A-Za-z_][\w.]*$")
TENSORS, KIND, ALIKE, JOINED, ONE, PIECE = NAMES = ("tensors", "kind", "alike", "joined", "one", "piece")


@dataclass(frozen=True)
class _Exchange:
    """One collective in a loop: `tensor` is what it is given in each turn, `filters` what has to be true of the turn."""

    file: PythonFile
    call: cst.Call
    loop: cst.For
    tensor: str
    filters: tuple[str, ...]
    before: bool  # other work of a turn stands in front of the collective
    behind: bool


def joined_exchange(edit: JoinedExchange, scene: Scene) -> tuple[Target, ...]:
    """The loop at the finding's line, or else the only one of its function. Raises `UsageError` where turns may depend on each other."""
    file, place = scene.source("exchanges")
    exchange = _in_turns(file, _at(file, place))
    taken = {node.value for node in descendants(file.function_around(exchange.loop) or file.module, cst.Name)}
    if clash := taken & {*NAMES}:
        raise refuse(f"{file.location(exchange.loop)}: the name {min(clash)} means something else there")
    spelled, needed = imports.reach(file, "torch", "cat")
    splices = (*needed, *_written(exchange, spelled))
    here = file.location(exchange.call)
    return (Target(here, None, lambda value: splices, f"`{file.text(exchange.call)}` at {here}", "joined"),)


def _at(file: PythonFile, place: Location) -> cst.Call:
    calls = [call for call in file.calls if file.full_name(call.func) in COLLECTIVES and any(file.loops_around(call))]
    here = [call for call in calls if file.covers(call, place.line)]
    function = file.function_at(place)
    near = here or [call for call in calls if function is not None and file.function_around(call) is function]
    if len(near) != 1:
        raise refuse(f"{place}: {'no' if not near else 'more than one'} collective stands in a loop near this line")
    return near[0]


def _in_turns(file: PythonFile, call: cst.Call) -> _Exchange:
    """What the loop around `call` does in each turn. Raises `UsageError` where that is more than is understood."""
    here = file.location(call)
    loop = next(iter(file.loops_around(call)))
    if not isinstance(loop, cst.For) or loop.asynchronous is not None or loop.orelse is not None:
        raise refuse(f"{here}: stands in a loop that goes over no tensors")
    if any(True for _ in descendants(loop.body, (cst.Break, cst.Return))):
        raise refuse(f"{here}: a turn of the loop may be its last one")
    if not call.args or call.args[0].keyword is not None or call.args[0].star:
        raise refuse(f"{here}: `{file.text(call)}` is not given its tensor first")
    if keyword(call, "async_op") is not None:
        raise refuse(f"{here}: `{file.text(call)}` does not wait for the others already")
    if not isinstance(sole(file.statement(call)), cst.Expr):
        raise refuse(f"{here}: what `{file.text(call)}` returns is used")
    own = {node.value for node in descendants(loop.target, cst.Name)}
    for arg in call.args[1:]:
        if any(node.value in own and is_name(file, node) for node in descendants(arg.value, cst.Name)):
            raise refuse(f"{here}: `{file.text(arg)}` is another one in each turn")
    filters: list[str] = []
    parts: dict[str, str] = {}  # names that a turn gives to parts of the loop's variable
    before = behind = False
    for block, inner in _blocks(file, call, loop):
        number = block.body.index(inner)
        behind = behind or number + 1 < len(block.body)
        for line in block.body[:number]:
            if (left := _left_out(file, line)) is not None:
                filters.insert(0, left)
            elif (alias := _alias(line, loop, own)) is not None:
                parts.update(alias)
            elif any(True for _ in descendants(line, cst.Continue)):
                raise refuse(f"{file.location(line)}: some turns of the loop end here")
            else:
                before = True
        guard = file.parent(block)
        if isinstance(guard, cst.If):
            filters.insert(0, _condition(file, guard.test))
    if before and behind:
        raise refuse(f"{here}: each turn of the loop works before and after the exchange")
    given = file.text(call.args[0].value)
    tensor = parts.get(given, given)
    if not PART.match(tensor) or tensor.split(".")[0] not in own or any(given_to(loop.body, name) for name in own):
        raise refuse(f"{here}: `{given}` is no plain part of what the loop goes over")
    return _Exchange(file, call, loop, tensor, tuple(filters), before, behind)


def _blocks(file: PythonFile, call: cst.Call, loop: cst.For) -> Iterator[tuple[cst.IndentedBlock, cst.BaseStatement]]:
    """The blocks around `call` up to the loop's own, each with its statement that leads to it; between them only plain conditions."""
    inner: cst.CSTNode | None = file.statement(call)
    while inner is not loop:
        block = file.parent(inner)  # type: ignore[arg-type]
        up = file.parent(block) if block is not None else None
        plain = isinstance(up, cst.If) and up.body is block and up.orelse is None and not isinstance(file.parent(up), cst.If)
        if not isinstance(block, cst.IndentedBlock) or not (up is loop or plain):
            raise refuse(f"{file.location(call)}: is part of another statement")
        yield block, inner  # type: ignore[misc]
        inner = up


def _left_out(file: PythonFile, line: cst.CSTNode) -> str | None:
    """What is true of the turns that go on behind `if …: continue`; None for any other statement."""
    if not isinstance(line, cst.If) or line.orelse is not None:
        return None
    body = line.body.body
    small = body[0].body[0] if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) else body[0] if len(body) == 1 else None
    if not isinstance(small, cst.Continue):
        return None
    test = line.test
    compared = test.comparisons[0] if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 else None
    if isinstance(test, cst.Comparison) and compared is not None and isinstance(compared.operator, cst.Is):
        return f"{file.text(test.left)} is not {file.text(compared.comparator)}"
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _condition(file, test.expression)
    return f"not ({_condition(file, test)})"


def _condition(file: PythonFile, test: cst.BaseExpression) -> str:
    if any(True for _ in descendants(test, (cst.Call, cst.Await, cst.NamedExpr))):
        raise refuse(f"{file.location(test)}: `{file.text(test)}` may do more than ask")
    return f"({file.text(test)})" if isinstance(test, cst.BooleanOperation) and not isinstance(test.operator, cst.And) else file.text(test)


def _alias(line: cst.CSTNode, loop: cst.For, own: set[str]) -> dict[str, str] | None:
    """The name that `line` alone gives to a part of the loop's variable, with that part."""
    small = sole(line)
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.targets[0].target, cst.Name):
        return None
    name, part = small.targets[0].target.value, dotted(small.value)
    plain = part is not None and part.split(".")[0] in own and len(given_to(loop.body, name)) == 1
    return {name: part} if plain and part is not None else None


def _written(exchange: _Exchange, cat: str) -> list[Splice]:
    file, loop, call = exchange.file, exchange.loop, exchange.call
    indent, whole = file.indent(loop), file.outer_text(loop.iter)
    tensor = exchange.tensor if exchange.tensor.endswith(OWNED) else f"{exchange.tensor}.detach()"
    asked = f" if {' and '.join(exchange.filters)}" if exchange.filters else ""
    given = ", ".join((JOINED, *(argument(file, arg) for arg in call.args[1:])))
    inner = file.module.default_indent
    rows = [
        f"{TENSORS} = [{tensor} for {file.text(loop.target)} in {whole}{asked}]",
        f"for {KIND} in dict.fromkeys({ONE}.dtype for {ONE} in {TENSORS}):",  # one tensor has one type, and there may be none at all
        f"{inner}{ALIKE} = [{ONE} for {ONE} in {TENSORS} if {ONE}.dtype == {KIND}]",
        f"{inner}{JOINED} = {cat}([{ONE}.flatten() for {ONE} in {ALIKE}])",
        f"{inner}{file.text(call.func)}({given})",
        f"{inner}for {ONE}, {PIECE} in zip({ALIKE}, {JOINED}.split([{ONE}.numel() for {ONE} in {ALIKE}])):",
        f"{2 * inner}{ONE}.copy_({PIECE}.view_as({ONE}))",
    ]
    old = whole_lines(file, *file.span(loop))
    if not (exchange.before or exchange.behind):
        return [Splice(file.path, old.start, old.end, _lines(file, indent, rows))]
    first = []
    if not _again(file, loop):
        if not isinstance(loop.iter, cst.Name):
            raise refuse(f"{file.location(loop)}: `{whole}` may be gone through only once")
        first = [f"{whole} = list({whole})"]
    if exchange.behind:
        return [Splice(file.path, old.start, old.start, _lines(file, indent, first + rows)), *taken_away(file, call)]
    listed = [Splice(file.path, old.start, old.start, _lines(file, indent, first))] if first else []
    return [*listed, *taken_away(file, call), Splice(file.path, old.end, old.end, _lines(file, indent, rows))]


def _lines(file: PythonFile, indent: str, rows: list[str]) -> str:
    return "".join(f"{indent}{row}{file.newline}" for row in rows)


def _again(file: PythonFile, loop: cst.For) -> bool:
    """Whether what `loop` goes over can be gone through twice: a list, or `model.parameters()`, which is a new iterator each time."""
    whole, name = loop.iter, dotted(loop.iter)
    function = file.function_around(loop)
    owner = file.class_of(function) if function is not None and name is not None and name.startswith("self.") else None
    made = given_to(owner or function or file.module, name) if name is not None else []
    if owner is not None and not all(_listed(each) for each in made):
        return False
    return any(
        _listed(each)
        or (isinstance(each, cst.Call) and each is whole and isinstance(each.func, cst.Attribute) and each.func.attr.value in OF_PARAMETERS)
        for each in (whole, *made)
    )


def _listed(node: cst.BaseExpression) -> bool:
    return isinstance(node, LISTS) or (isinstance(node, cst.Call) and dotted(node.func) in LISTING)
