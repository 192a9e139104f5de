"""A batch that the program cuts into micro-batches itself, `x.chunk(n)`, `x.split(rows)` or `x[i : i + rows]`: fewer and larger pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.exchange import of_means, worked_out
from trainflash.knobs.kinds import CutBatch
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import given_to, literal, refuse, short
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit
from trainflash.knobs.training import micro_batches
from trainflash.knobs.training.backward_loops import BackwardLoop, backward_loops

BY_COUNT = ("chunk", "tensor_split")
BY_ROWS = ("split",)
SIZES = ("shape", "size")
Place = tuple[PythonFile, cst.BaseExpression]


@dataclass(frozen=True)
class _Cuts:
    """Where a loop over pieces says how many there are, or how many rows each has."""

    region: BackwardLoop
    numbers: tuple[Place, ...]
    pieces: frozenset[str]  # names of one piece
    lists: frozenset[str]  # names of all pieces
    rows: bool


def cut_batch(edit: CutBatch, scene: Scene) -> tuple[Target, ...]:
    """The number of pieces, or their rows; the value is the rows. Raises `UsageError` where an update would not stay the same."""
    updates = scene.facts.get("updates")
    if updates is None or updates.micro_batch is None:
        raise refuse("how many rows a micro-batch has was not measured")
    pieces, rows = round(updates.backwards_per_step), updates.micro_batch
    cuts = _cuts(scene)
    divisors = _divisors(cuts)
    of_means(scene, divisors)
    counts = [each for each in divisors if not _follows(cuts, *each)]
    if not divisors or (cuts.rows and counts):
        raise refuse(f"{cuts.region.here()}: the loss of a piece is not divided by the number of pieces")
    told = [*cuts.numbers, *counts]
    typed, typing = _typed(scene, told, rows if cuts.rows else pieces, beside=divisors)
    if typing is None:
        typed, typing = _of_quotient(scene, told, rows)
        by_rows = True
    else:
        by_rows = cuts.rows
    if typing is None:
        file, node = told[0]
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is no number that somebody typed for the micro-batches alone")

    def write(value: Any) -> tuple[Edit, ...]:
        factor, rest = divmod(value, rows)
        if rest or factor < 2 or pieces % factor:
            raise refuse(f"{value!r} rows instead of {rows!r} do not divide {pieces!r} micro-batches", "choose a divisor")
        return typing(typed.value * factor if by_rows else pieces // factor)

    file, node = cuts.numbers[0]
    return (Target(file.location(node), rows, write, f"{'rows' if by_rows else 'number'} of the pieces of a batch, from {typed.shown}"),)


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
        given = [arg.value for arg in whole.args if arg.keyword is None and not arg.star]
        if len(given) != 3 or literal(given[0]) != 0 or not isinstance(loop.target, cst.Name):  # type: ignore[attr-defined]
            return None
        ends = list(_ends(file, loop, loop.target.value))  # type: ignore[attr-defined]
        if not ends or {file.text(each) for each in ends} != {file.text(given[2])}:
            return None
        cut = [each for each in descendants(loop, cst.Assign) if any(file.inside(end, each) for end in ends)]
        pieces |= {name.value for each in cut for target in each.targets for name in descendants(target.target, cst.Name)}  # type: ignore[attr-defined]
        return _Cuts(region, tuple((file, each) for each in (given[2], *ends)), frozenset(pieces), frozenset(), True)
    lists = {name.value: given[0] for name in descendants(whole, cst.Name) if len(given := given_to(owner, name.value)) == 1}  # type: ignore[attr-defined]
    calls = list(_cutting(file, [whole, *lists.values()]))
    kinds = {callees.called_name(call) in BY_ROWS for call, _ in calls}
    if len(kinds) != 1:
        return None
    return _Cuts(region, tuple((file, node) for _, node in calls), frozenset(pieces), frozenset(lists), kinds.pop())


def _cutting(file: PythonFile, parts: list[cst.BaseExpression]) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """The calls that make the pieces, and the number that each is given."""
    for call in (each for part in parts for each in descendants(part, cst.Call)):
        if callees.called_name(call) in (*BY_COUNT, *BY_ROWS):  # type: ignore[arg-type]
            function = (file.full_name(call.func) or "").startswith("torch.")  # type: ignore[attr-defined]
            given = positional(call, 1 if function else 0)  # type: ignore[arg-type]
            if given is None:
                raise refuse(f"{file.location(call)}: what `{short(file.text(call))}` cuts by cannot be told")
            yield call, given.value  # type: ignore[misc]


def _ends(file: PythonFile, loop: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """`rows` of each `x[i : i + rows]`."""
    for part in descendants(loop, cst.Slice):
        upper = part.upper  # type: ignore[attr-defined]
        if dotted(part.lower) == name and isinstance(upper, cst.BinaryOperation) and isinstance(upper.operator, cst.Add):  # type: ignore[attr-defined]
            yield from [upper.right] if dotted(upper.left) == name else []


def _divisors(cuts: _Cuts) -> list[Place]:
    """What a loss is divided by in the loop and in the functions between it and the backward pass, quotients as a whole."""
    found: list[Place] = []
    for file, node in cuts.region.each((cst.BinaryOperation, cst.AugAssign)):
        if isinstance(node.operator, (cst.Divide, cst.DivideAssign)):  # type: ignore[attr-defined]
            found.append((file, node.right if isinstance(node, cst.BinaryOperation) else node.value))  # type: ignore[attr-defined]
    return [(file, each) for file, each in found if not any(each is not other and file.inside(each, other) for _, other in found)]


def _follows(cuts: _Cuts, file: PythonFile, divisor: cst.BaseExpression) -> bool:
    """Whether a divisor follows the cut by itself: `len(pieces)`, `whole / rows`, or `len(x)` where `len(piece)` is multiplied."""
    measured = _measured(divisor)
    if measured is not None and dotted(measured) in cuts.lists:
        return True
    rows = {file.text(node) for where, node in cuts.numbers if where is file} if cuts.rows else set()
    if isinstance(divisor, cst.BinaryOperation) and isinstance(divisor.operator, (cst.Divide, cst.FloorDivide)):
        return file.text(divisor.right) in rows
    up = file.parent(divisor)
    if not isinstance(up, cst.BinaryOperation) or (measured is not None and dotted(measured) in cuts.pieces):
        return False
    parts = list(descendants(up.left, (cst.Call, cst.Subscript, cst.Name)))
    sizes = [of for each in parts if (of := _measured(each)) is not None]  # type: ignore[arg-type]
    return any(file.text(each) in rows for each in parts) or any(dotted(of) in cuts.pieces for of in sizes)


def _measured(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `len(x)`, `x.shape[0]` and `x.size(0)`."""
    if isinstance(node, cst.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        return node.args[0].value
    shape = node.value if isinstance(node, cst.Subscript) else node.func if isinstance(node, cst.Call) else None
    return shape.value if isinstance(shape, cst.Attribute) and shape.attr.value in SIZES else None


def _typed(scene: Scene, told: list[Place], expected: int, beside: list[Place] | None = None) -> tuple[Source, Any]:
    """The typed numbers that all of `told` are, and what writes them; (…, None) where one is none. `beside` may read them, too."""
    found: dict[tuple[object, int], Source] = {}
    lines = {(file.path, line) for file, node in (*told, *(beside or ())) for line in file.lines_of(node)}
    for file, node in told:
        try:
            source = sources.Resolver(scene.project, expected).source(file, node)
        except UsageError:
            source = None
        if source is None or source.write is None or source.value != expected or isinstance(source.value, bool):
            return None, None  # type: ignore[return-value]
        found[source.location, source.offset] = source
        for use in source.readers:
            if (use.location.file, use.location.line) not in lines and use.kind != "loader":
                raise source.shared_with(use)
    parts = list(found.values())
    return parts[0], lambda value: tuple(splice for part in parts for splice in part.write(value))  # type: ignore[misc]


def _of_quotient(scene: Scene, told: list[Place], rows: int) -> tuple[Source, Any]:
    """The typed rows, where all of `told` are one number that is worked out as `rows of an update // rows`."""
    made = {id(part[1]): part for file, node in told if (part := worked_out(scene, file, node)) is not None}
    if len(made) != 1 or any(worked_out(scene, file, node) is None for file, node in told):
        return None, None  # type: ignore[return-value]
    file, node = next(iter(made.values()))
    return _typed(scene, [(file, node.right)], rows)
