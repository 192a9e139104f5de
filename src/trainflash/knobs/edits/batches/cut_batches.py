"""A batch that the program cuts into micro-batches itself, `x.chunk(n)`, `x.split(rows)` or `x[i : i + rows]`: fewer and larger pieces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.batches.exchange import of_means, worked_out
from trainflash.knobs.effects import given
from trainflash.knobs.kinds import CutBatch
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import given_to, is_name, literal, refuse, short
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional
from trainflash.knobs.reading.sizes import size_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit, Splice
from trainflash.knobs.training import each_micro_batch, micro_batches
from trainflash.knobs.training.backward_loops import BackwardLoop, backward_loops
from trainflash.knobs.training.divided_loss import UNDIVIDED, divided_loss, is_sum, no_sum

BY_COUNT = ("chunk", "tensor_split")
BY_ROWS = ("split",)
Place = tuple[PythonFile, cst.BaseExpression]
Typed = tuple[Source, Callable[[Any], tuple[Edit, ...]]]  # the first of some typed numbers, and what writes all of them


@dataclass(frozen=True)
class _Cuts:
    """Where a loop over pieces says how many there are, or how many rows each has."""

    region: BackwardLoop
    numbers: tuple[Place, ...]
    pieces: frozenset[str]  # names of one piece
    lists: frozenset[str]  # names of all pieces
    wholes: frozenset[str]  # source of what is cut
    rows: bool


def cut_batch(edit: CutBatch, scene: Scene) -> tuple[Target, ...]:
    """The number of pieces, or their rows; the value is the rows. Raises `UsageError` where an update would not stay the same."""
    updates = scene.facts.get("updates")
    if updates is None or updates.micro_batch is None:
        raise refuse("how many rows a micro-batch has was not measured")
    pieces, rows = round(updates.backwards_per_step), updates.micro_batch
    cuts = _cuts(scene)
    each_micro_batch.steps_once(cuts.region, ())
    each_micro_batch.of_rows_alone(cuts.region)
    loss = divided_loss(scene.project, cuts.region)
    divisor = (loss.file, loss.divisor)
    made = (loss.file, _worked_out_once(*divisor))
    summed = is_sum(scene.project, loss) and (counted := _counted(made[1])) is not None and loss.file.text(counted) in cuts.wholes
    if not summed:  # a sum over the rows of all pieces, divided by as many rows, is the same however they are cut
        of_means(scene, [divisor])
        no_sum(scene.project, loss)
    _nothing_else(cuts)
    follows = summed or _follows(cuts, *divisor, made[1])
    _no_other_reader(loss.file, loss.divisor, made[1])
    if cuts.rows and not follows:
        raise refuse(f"{cuts.region.here()}: {UNDIVIDED}")
    told = cuts.numbers if follows else (*cuts.numbers, divisor)
    by_rows, typed = cuts.rows, _typed(scene, told, rows if cuts.rows else pieces, beside=(divisor, made))
    if typed is None:
        by_rows, typed = True, _of_quotient(scene, told, rows)
    if typed is None and cuts.rows and follows and not any(_is_typed(scene, *each) for each in cuts.numbers):
        return (_multiplied(cuts, rows, pieces),)
    if typed is None:
        file, node = told[0]
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is no number that somebody typed for the micro-batches alone")
    first, typing = typed

    def write(value: Any) -> tuple[Edit, ...]:
        factor = _factor(value, rows, pieces)
        return typing(first.value * factor if by_rows else pieces // factor)

    file, node = cuts.numbers[0]
    return (Target(file.location(node), rows, write, f"{'rows' if by_rows else 'number'} of the pieces of a batch, from {first.shown}"),)


def _factor(value: Any, rows: int, pieces: int) -> int:
    factor, rest = divmod(value, rows)
    if rest or factor < 2 or pieces % factor:
        raise refuse(f"{value!r} rows instead of {rows!r} do not divide {pieces!r} micro-batches", "choose a divisor")
    return factor


def _multiplied(cuts: _Cuts, rows: int, pieces: int) -> Target:
    """Rows that the program works out, times a number, wherever the batch is cut."""
    file, first = cuts.numbers[0]
    if isinstance(first, cst.BinaryOperation) and isinstance(first.operator, cst.Multiply) and isinstance(literal(first.right), int):
        raise refuse(f"{file.location(first)}: `{short(file.text(first))}` is a number of times what the program works out already")

    def write(value: Any) -> tuple[Edit, ...]:
        factor = _factor(value, rows, pieces)
        made = []
        for where, node in cuts.numbers:
            text = where.text(node) if isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) else f"({where.text(node)})"
            made.append(Splice(where.path, *where.outer_span(node), f"{text} * {factor}"))
        return tuple(made)

    return Target(file.location(first), rows, write, f"rows of the pieces of a batch, which `{short(file.text(first))}` works out")


def _cuts(scene: Scene) -> _Cuts:
    """The one loop with a backward pass over pieces of a batch."""
    regions = {id(region.loop): region for region in backward_loops(scene.project)}
    found = [cuts for region in regions.values() if isinstance(region.loop, cst.For) and (cuts := _cut_by(region)) is not None]
    if len(found) != 1:
        raise refuse("no loop with a backward pass goes over pieces of a batch" if not found else "several loops go over pieces of a batch")
    if any(micro_batches.makes_updates(scene.project, call) for _, call in found[0].region.each(cst.Call)):  # type: ignore[arg-type]
        raise refuse(f"{found[0].region.here()}: each piece makes an update of its own")
    return found[0]


def _cut_by(region: BackwardLoop) -> _Cuts | None:
    """What the loop says of its pieces; None where it goes over something else."""
    file, loop = region.file, region.loop
    owner = file.function_around(loop) or file.module
    whole: cst.BaseExpression = loop.iter  # type: ignore[attr-defined]
    pieces = {each.value for each in descendants(loop.target, cst.Name)}  # type: ignore[attr-defined]
    if isinstance(whole, cst.Call) and dotted(whole.func) == "range":
        ends_at = [arg.value for arg in whole.args if arg.keyword is None and not arg.star]
        if len(ends_at) != 3 or literal(ends_at[0]) != 0 or not isinstance(loop.target, cst.Name):  # type: ignore[attr-defined]
            return None
        ends = list(_ends(file, loop, loop.target.value))  # type: ignore[attr-defined]
        if not ends or {file.text(each) for each in ends} != {file.text(ends_at[2])}:
            return None
        cut = [each for each in descendants(loop, cst.Assign) if any(file.inside(end, each) for end in ends)]
        pieces |= {name.value for each in cut for target in each.targets for name in descendants(target.target, cst.Name)}  # type: ignore[attr-defined]
        wholes = frozenset(file.text(up.value) for each in ends for up in file.ancestors(each) if isinstance(up, cst.Subscript))
        return _Cuts(region, tuple((file, each) for each in (ends_at[2], *ends)), frozenset(pieces), frozenset(), wholes, True)
    named = {name.value: values[0] for name in descendants(whole, cst.Name) if len(values := given_to(owner, name.value)) == 1}  # type: ignore[attr-defined]
    lists = {name: value for name, value in named.items() if any(True for _ in _cutting(file, [value]))}
    calls = list(_cutting(file, [whole, *lists.values()]))
    _only_pieces(file, whole, lists)
    kinds = {callees.called_name(call) in BY_ROWS for call, _ in calls}
    if len(kinds) != 1:
        return None
    wholes = frozenset(file.text(_base(file, call)) for call, _ in calls)
    return _Cuts(region, tuple((file, node) for _, node in calls), frozenset(pieces), frozenset(lists), wholes, kinds.pop())


def _base(file: PythonFile, call: cst.Call) -> cst.BaseExpression:
    """What a call cuts: `x` of `x.split(2)` and of `torch.split(x, 2)`."""
    function = (file.full_name(call.func) or "").startswith("torch.") and bool(call.args)
    return call.args[0].value if function else call.func.value  # type: ignore[union-attr]


def _only_pieces(file: PythonFile, whole: cst.BaseExpression, lists: Collection[str]) -> None:
    """Raises `UsageError` where the loop goes over something beside the pieces, or numbers them."""
    if isinstance(whole, cst.Call) and dotted(whole.func) in ("zip", "list", "tuple"):
        for arg in whole.args:
            if arg.keyword is None:
                _only_pieces(file, arg.value, lists)
    elif not (isinstance(whole, cst.Call) and callees.called_name(whole) in (*BY_COUNT, *BY_ROWS)) and dotted(whole) not in lists:
        raise refuse(f"{file.location(whole)}: the loop goes over `{short(file.text(whole))}`, too, beside the pieces of a batch")


def _cutting(file: PythonFile, parts: list[cst.BaseExpression]) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """The calls that make the pieces, and the number that each is given."""
    for call in (each for part in parts for each in descendants(part, cst.Call)):
        if callees.called_name(call) in (*BY_COUNT, *BY_ROWS):  # type: ignore[arg-type]
            function = (file.full_name(call.func) or "").startswith("torch.")  # type: ignore[attr-defined]
            number = positional(call, 1 if function else 0)  # type: ignore[arg-type]
            along = positional(call, 2 if function else 1) or keyword(call, "dim")  # type: ignore[arg-type]
            if number is None or (along is not None and literal(along.value) != 0):
                raise refuse(f"{file.location(call)}: that `{short(file.text(call))}` cuts a batch by its rows cannot be told")
            yield call, number.value  # type: ignore[misc]


def _ends(file: PythonFile, loop: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """`rows` of each `x[i : i + rows]`."""
    for part in descendants(loop, cst.Slice):
        upper = part.upper  # type: ignore[attr-defined]
        if dotted(part.lower) == name and isinstance(upper, cst.BinaryOperation) and isinstance(upper.operator, cst.Add):  # type: ignore[attr-defined]
            yield from [upper.right] if dotted(upper.left) == name else []


def _nothing_else(cuts: _Cuts) -> None:
    """Raises `UsageError` where a piece is more than rows of its batch, or something is done once for each piece."""
    region, file, loop = cuts.region, cuts.region.file, cuts.region.loop
    owner = file.function_around(loop) or file.module
    for name in descendants(owner, cst.Name):
        up = file.parent(name)
        told = name.value in cuts.lists and not file.inside(name, loop.iter) and not isinstance(up, cst.AssignTarget)  # type: ignore[attr-defined]
        measured = isinstance(up, cst.Arg) and isinstance(call := file.parent(up), cst.Call) and dotted(call.func) == "len"
        if told and is_name(file, name) and not measured:  # type: ignore[arg-type]
            raise refuse(f"{file.location(name)}: `{file.text(name)}`, the pieces of a batch, are used elsewhere, too")
    for where, call in region.each(cst.Call):
        if callees.called_name(call).startswith("clip") or callees.called_name(call) == "step":  # type: ignore[arg-type]
            raise refuse(f"{where.location(call)}: `{short(where.text(call))}` is done once for each piece")
    for where, node in region.each(cst.AugAssign):
        if isinstance(literal(node.value), (int, float)):  # type: ignore[attr-defined]
            raise refuse(f"{where.location(node)}: `{short(where.text(node))}` counts pieces")
    if any(isinstance(up, cst.If) and region.file.inside(up, loop) for up in region.backward[0].ancestors(region.backward[1])):
        raise refuse(f"{region.here()}: some pieces have no backward pass")
    body = loop.body.body if isinstance(loop, cst.For) and isinstance(loop.body, cst.IndentedBlock) else ()
    carried = given.read_before_set(file, tuple(body), set(cuts.pieces))
    if carried is not None:
        raise refuse(f"{file.location(carried)}: `{carried.value}` is handed from one piece to the next")


def _follows(cuts: _Cuts, file: PythonFile, divisor: cst.BaseExpression, made: cst.BaseExpression) -> bool:
    """Whether a divisor, worked out as `made`, follows the cut by itself: `len(pieces)`, `whole / rows`, or `len(x)` where `len(piece)` is
    multiplied."""
    measured = _counted(divisor)
    if measured is not None and dotted(measured) in cuts.lists:
        return True
    rows = {file.text(node) for where, node in cuts.numbers if where is file} if cuts.rows else set()
    if isinstance(made, cst.BinaryOperation) and isinstance(made.operator, (cst.Divide, cst.FloorDivide)):
        return file.text(made.right) in rows
    up = file.parent(divisor)
    if not isinstance(up, cst.BinaryOperation) or (measured is not None and dotted(measured) in cuts.pieces):
        return False
    factors = list(_factors(up.left))
    sizes = [of for each in factors if (of := _counted(each)) is not None]
    return any(file.text(each) in rows for each in factors) or any(dotted(of) in cuts.pieces for of in sizes)


def _no_other_reader(file: PythonFile, divisor: cst.BaseExpression, made: cst.BaseExpression) -> None:
    """Raises `UsageError` where the name of a quotient that follows the cut is read elsewhere, too."""
    if not isinstance(made, cst.BinaryOperation) or not isinstance(divisor, cst.Name):
        return
    for name in descendants(file.function_around(divisor) or file.module, cst.Name):
        told = name.value == divisor.value and name is not divisor and is_name(file, name)  # type: ignore[attr-defined,arg-type]
        if told and not isinstance(file.parent(name), cst.AssignTarget):
            raise refuse(f"{file.location(name)}: `{divisor.value}` is used elsewhere, too")


def _factors(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What is multiplied in a product; `node` itself where it is none."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _worked_out_once(file: PythonFile, node: cst.BaseExpression) -> cst.BaseExpression:
    """What a name was given, where its function gives it one thing; `node` itself otherwise."""
    given = given_to(file.function_around(node) or file.module, node.value) if isinstance(node, cst.Name) else []
    return given[0] if len(given) == 1 else node


def _counted(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `len(x)`, `x.shape[0]` and `x.size(0)`."""
    measured = size_of(node)
    return measured[0] if measured is not None and measured[1] == 0 else None


def _typed(scene: Scene, told: Sequence[Place], expected: int, beside: Sequence[Place] = ()) -> Typed | None:
    """The typed numbers that all of `told` are; None where one is none. `beside` may read them, too."""
    found: dict[tuple[object, int], Source] = {}
    lines = {(file.path, line) for file, node in (*told, *beside) for line in file.lines_of(node)}
    for file, node in told:
        try:
            source = sources.Resolver(scene.project, expected).source(file, node)
        except UsageError:
            source = None
        if source is None or source.write is None or source.value != expected or isinstance(source.value, bool):
            return None
        found[source.location, source.offset] = source
        for use in source.readers:
            if (use.location.file, use.location.line) not in lines and use.kind != "loader":
                raise source.shared_with(use)
    parts = list(found.values())
    return parts[0], lambda value: tuple(splice for part in parts for splice in part.write(value))  # type: ignore[misc]


def _is_typed(scene: Scene, file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether somebody typed that number, whatever it is now."""
    try:
        source = sources.Resolver(scene.project).source(file, node)
    except UsageError:
        return False
    return source is not None and source.value is not None


def _of_quotient(scene: Scene, told: Sequence[Place], rows: int) -> Typed | None:
    """The typed rows, where all of `told` are one number that is worked out as `rows of an update // rows`."""
    made = [worked_out(scene, file, node) for file, node in told]
    if made[0] is None or any(each is None or each[1] is not made[0][1] for each in made):
        return None
    file, node = made[0]
    return _typed(scene, [(file, node.right)], rows)
