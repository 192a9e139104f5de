"""Micro-batch against accumulation: one value is multiplied, another divided, so that the rows of an update stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from trainflash.knobs.kinds import Accumulation, DrawnBatch
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit
from trainflash.knobs.training import micro_batches

RATES = ("lr", "learning_rate", "base_lr", "max_lr", "weight_decay")


def exchange(more: Target, less: Target) -> tuple[Target, ...]:
    """Both targets as one; its value is that of `more`."""
    for part in (more, less):
        if not isinstance(part.current, int) or isinstance(part.current, bool) or part.current < 1:
            raise refuse(f"{part.where} is {part.current!r}, not a number that can be exchanged")
    if less.current < 2:
        raise refuse(f"{less.where} is 1: there is nothing to exchange")

    def write(value: Any) -> tuple[Edit, ...]:
        factor, rest = divmod(value, more.current)
        if rest or factor < 2 or less.current % factor:
            raise refuse(f"{value!r} rows instead of {more.current!r} do not divide {less.current!r} micro-batches", "choose a divisor")
        return (*more.write(value), *less.write(less.current // factor))

    return (Target(more.location, more.current, write, f"{more.where}, against {less.where}"),)


def accumulation(edit: Accumulation, scene: Scene) -> tuple[Target, ...]:
    """The number by which the loss is divided before `.backward()`, where the run took as many backwards to an update.

    What else says that number in the loop, such as the remainder in front of `step()`, is changed with it.
    """
    updates, loader = scene.facts.get("updates"), scene.facts.get("train_loader")
    if updates is None:
        raise refuse("how many backwards make an update was not measured")
    expected = round(updates.backwards_per_step)
    found = _divisors(scene)
    of_means(scene, found)
    target, source = _one(scene, found, expected, "the loss is divided by", shared=True)
    if loader is not None and updates.micro_batch is not None and loader.batch_size == expected * updates.micro_batch:
        raise refuse(f"the program cuts the loader's {loader.batch_size} rows into {expected} micro-batches, so both are one number")
    return (_tied(scene, target, source, expected),)


def _tied(scene: Scene, target: Target, divisor: Source, expected: int) -> Target:
    """`target` with every other number that says how many micro-batches make an update. Raises `UsageError` for one that cannot follow."""

    def number(file: PythonFile, node: cst.BaseExpression) -> Source | None:
        source = sources.known(scene.project, file, node, expected)
        return source if source is not None and source.write is not None and source.value == expected else None

    counted = micro_batches.counts(scene.project, lambda file, node: number(file, node) is not None)
    lines = {(file.path, line) for file, node in counted for line in file.lines_of(node)}
    parts = {(divisor.location, divisor.offset): divisor}
    for source in [source for each in counted if (source := number(*each)) is not None]:
        if (source.location, source.offset) in parts:
            continue
        others = [use for use in source.readers if (use.location.file, use.location.line) not in lines]
        if others:
            raise source.shared_with(others[0])
        parts[source.location, source.offset] = source

    def write(value: Any) -> tuple[Edit, ...]:
        return tuple(splice for part in parts.values() if part.write is not None for splice in part.write(value))

    return replace(target, write=write)


def _divisors(scene: Scene) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What something is divided by in functions that call `.backward()`."""
    found = []
    for file in scene.project.parsed("backward"):
        for function in _scopes(file):
            if not any(callees.method_name(call) == "backward" for call in descendants(function, cst.Call)):
                continue
            for node in descendants(function, (cst.BinaryOperation, cst.AugAssign)):
                divides = isinstance(node.operator, (cst.Divide, cst.DivideAssign))
                if divides:
                    found.append((file, node.right if isinstance(node, cst.BinaryOperation) else node.value))
    return found


def of_means(scene: Scene, divisors: Sequence[tuple[PythonFile, Any]]) -> None:
    """Raises `UsageError` where the loss is a sum over rows, or the rate is made of the number that would change."""
    for file, divisor in divisors:
        up = file.parent(divisor)
        value = up.left if isinstance(up, cst.BinaryOperation) else None
        for call in descendants(value, cst.Call) if value is not None else ():
            if callees.method_name(call) == "sum":
                raise refuse(f"{file.location(call)}: the loss is a sum over rows, so larger micro-batches would weigh more")
    texts = {file.text(divisor) for file, divisor in divisors if isinstance(divisor, (cst.Name, cst.Attribute))}
    for file in scene.project.parsed():
        for call in file.calls:
            reduction = keyword(call, "reduction")
            if reduction is not None and string_value(reduction.value) == "sum":
                raise refuse(f"{file.location(call)}: a loss is a sum over rows, so larger micro-batches would weigh more")
        rates = [arg.value for call in file.calls for name in RATES if (arg := keyword(call, name)) is not None]
        for assign in file.each(cst.Assign):
            rates += [assign.value for target in assign.targets if (dotted(target.target) or "").split(".")[-1] in RATES]
        for rate in rates:
            if any(file.text(node) in texts for node in descendants(rate, (cst.Name, cst.Attribute))):
                raise refuse(f"{file.location(rate)}: the learning rate is made of the number of micro-batches")


def drawn_batch(edit: DrawnBatch, scene: Scene) -> tuple[Target, ...]:
    """The number of rows in the function that draws batches, such as `batch_size` in `get_batch`."""
    return (_drawn(scene, shared=False)[0],)


def _drawn(scene: Scene, *, shared: bool) -> tuple[Target, Source]:
    updates, place = scene.facts.get("updates"), scene.facts.get("data_function")
    if updates is None or updates.micro_batch is None:
        raise refuse("how many rows a micro-batch has was not measured")
    if not scene.project.owns(place):
        raise refuse("no function of this project draws the batches")
    file = scene.project.python(place.file)
    function = file.function_at(place)
    if function is None:
        raise refuse(f"{place}: is no function")
    found = [
        (file, node) for node in descendants(function.body, (cst.Name, cst.Attribute)) if not isinstance(file.parent(node), cst.Attribute)
    ]
    return _one(scene, found, updates.micro_batch, f"the rows drawn in {function.name.value}", shared=shared)


def _scopes(file: PythonFile) -> list[cst.CSTNode]:
    return [*file.functions, *(line for line in file.module.body if not isinstance(line, (cst.FunctionDef, cst.ClassDef)))]


def _one(scene: Scene, nodes: list[tuple[PythonFile, Any]], expected: int, what: str, *, shared: bool) -> tuple[Target, Source]:
    """The one typed number among `nodes` whose value the run saw, and where it comes from."""
    found: dict[tuple[object, ...], tuple[PythonFile, Any, Source]] = {}
    for file, node in nodes:
        source = sources.known(scene.project, file, node, expected)
        if source is not None and source.write is not None and source.value == expected and not isinstance(source.value, bool):
            found.setdefault((source.location, source.offset), (file, node, source))
    if len(found) != 1:
        raise refuse(f"{what}: {'no' if not found else 'more than one'} number {expected} that somebody typed was found")
    file, node, source = next(iter(found.values()))
    function = file.function_around(node)
    readers = [use for use in source.readers if function is None or not file.covers(function, use.location.line)]
    if readers and not shared:
        raise source.shared_with(readers[0])
    return Target(file.location(node), source.value, source.write, f"{what} {source.value}, from {source.shown}"), source  # type: ignore[arg-type]
