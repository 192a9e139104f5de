"""A batch that the program cuts into micro-batches itself, `x.chunk(n)` or `x.split(rows)`: fewer and larger pieces of the same batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.exchange import of_means, worked_out
from trainflash.knobs.kinds import CutBatch
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import given_to, refuse, short
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit
from trainflash.knobs.training import micro_batches
from trainflash.knobs.training.backward_loops import BackwardLoop, backward_loops

BY_COUNT = {"chunk": 0, "tensor_split": 0}  # methods of a tensor, and where the number of pieces stands
BY_ROWS = {"split": 0}
Place = tuple[PythonFile, cst.BaseExpression]


@dataclass(frozen=True)
class _Cuts:
    """Where a loop over pieces says how many there are, or how many rows each has."""

    region: BackwardLoop
    numbers: tuple[Place, ...]
    rows: bool


def cut_batch(edit: CutBatch, scene: Scene) -> tuple[Target, ...]:
    """The number of pieces, or their rows; the value is the rows. Raises `UsageError` where an update would not stay the same."""
    updates = scene.facts.get("updates")
    if updates is None or updates.micro_batch is None:
        raise refuse("how many rows a micro-batch has was not measured")
    pieces, rows = round(updates.backwards_per_step), updates.micro_batch
    cuts = _cuts(scene)
    divisors = list(_divisors(cuts))
    of_means(scene, divisors)
    lengths = [each for each in divisors if _is_length(*each)]
    counts = [each for each in divisors if each not in lengths]
    if not divisors or (cuts.rows and counts):
        raise refuse(f"{cuts.region.here()}: the loss of a piece is not divided by the number of pieces")
    told = [*cuts.numbers, *counts]
    typed, typing = _typed(scene, told, rows if cuts.rows else pieces)
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
    found = []
    for region in regions.values():
        if isinstance(region.loop, cst.For):
            calls = list(_cutting(region.file, region.loop))
            by_rows = {callees.called_name(call) in BY_ROWS for call, _ in calls}
            if len(by_rows) == 1:
                found.append(_Cuts(region, tuple((region.file, node) for _, node in calls), by_rows.pop()))
    if len(found) != 1:
        raise refuse("no loop with a backward pass goes over pieces of a batch" if not found else "several loops go over pieces of a batch")
    if any(micro_batches.makes_updates(scene.project, call) for _, call in found[0].region.each(cst.Call)):  # type: ignore[arg-type]
        raise refuse(f"{found[0].region.here()}: each piece makes an update of its own")
    return found[0]


def _cutting(file: PythonFile, loop: cst.For) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """The calls that make the pieces the loop goes over, and the number that each is given."""
    owner = file.function_around(loop) or file.module
    parts: list[cst.CSTNode] = [loop.iter]
    parts += [value for name in descendants(loop.iter, cst.Name) if len(given := given_to(owner, name.value)) == 1 for value in given]  # type: ignore[attr-defined]
    for call in (each for part in parts for each in descendants(part, cst.Call)):
        name = callees.called_name(call)  # type: ignore[arg-type]
        if name in BY_COUNT or name in BY_ROWS:
            function = (file.full_name(call.func) or "").startswith("torch.")  # type: ignore[attr-defined]
            given = positional(call, 1 if function else 0)  # type: ignore[arg-type]
            if given is None:
                raise refuse(f"{file.location(call)}: what `{short(file.text(call))}` cuts by cannot be told")
            yield call, given.value  # type: ignore[misc]


def _divisors(cuts: _Cuts) -> Iterator[Place]:
    """What a loss is divided by in the loop and in the functions between it and the backward pass."""
    for file, node in cuts.region.each((cst.BinaryOperation, cst.AugAssign)):
        if isinstance(node.operator, (cst.Divide, cst.DivideAssign)):  # type: ignore[attr-defined]
            yield file, node.right if isinstance(node, cst.BinaryOperation) else node.value  # type: ignore[attr-defined]


def _is_length(file: PythonFile, node: cst.BaseExpression) -> bool:
    """`len(pieces)`, which follows the cut by itself, or `len(x)` of the whole batch, which stays."""
    return isinstance(node, cst.Call) and dotted(node.func) == "len"


def _typed(scene: Scene, told: list[Place], expected: int) -> tuple[Source, Any]:
    """The one typed number that all of `told` are, and what writes it; (…, None) where they are none."""
    found: dict[tuple[object, int], Source] = {}
    lines = {(file.path, line) for file, node in told for line in file.lines_of(node)}
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
