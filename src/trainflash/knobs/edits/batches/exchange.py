"""Micro-batch against accumulation: one value is multiplied, another divided, so that the rows of an update stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import which_call
from trainflash.knobs.kinds import Accumulation, CallArgument, DrawnBatch, Exchange
from trainflash.knobs.reading import callees, callers, sources
from trainflash.knobs.reading.expressions import argument_node, assigned, refuse
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit
from trainflash.knobs.training import micro_batches
from trainflash.schema import Location

HANDED_ON = 2  # own: functions that hand a number on
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
        source = _quietly(lambda: sources.Resolver(scene.project, expected).source(file, node))
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


def derived(edit: Exchange, scene: Scene) -> tuple[Target, ...]:
    """Rows alone, where the program works the micro-batches out as `rows of an update // rows`. Raises `UsageError` otherwise."""
    rows = _rows_drawn(scene) if isinstance(edit.more, DrawnBatch) else _rows_passed(edit.more, scene)
    if isinstance(edit.less, CallArgument):
        where, other = which_call.the_call(edit.less, scene)
        given = argument_node(where, other, edit.less.argument, edit.less.position)
        times = [(where, given)] if given is not None else []
    else:
        times = _divisors(scene)
        of_means(scene, times)
    quotients = [part for where, node in times if (part := worked_out(scene, where, node)) is not None]
    fitting = {id(part): (where, part) for where, part in quotients if rows.divide(where, part)}
    if len(fitting) != 1:
        raise refuse(f"{rows.location}: the number of micro-batches is not worked out from their rows")
    made_in, quotient = next(iter(fitting.values()))
    if isinstance(edit.less, Accumulation):
        micro_batches.counts(
            scene.project, lambda where, node: (part := worked_out(scene, where, node)) is not None and part[1] is quotient
        )
    source, whole = rows.source(), sources.Resolver(scene.project).source(made_in, quotient.left)
    if source is None or source.write is None or whole is None or not isinstance(whole.value, int) or not isinstance(source.value, int):
        raise refuse(f"{made_in.location(quotient)}: `{made_in.text(quotient)}` is not made of numbers that somebody typed")
    lines = {(made_in.path, line) for line in made_in.lines_of(quotient)} | rows.lines
    for use in source.readers:
        if use.kind != "loader" and (use.location.file, use.location.line) not in lines:
            raise source.shared_with(use)
    typing, total = source.write, whole.value

    def write(value: Any) -> tuple[Edit, ...]:
        if value < 1 or total % value or total < value:
            raise refuse(f"{value!r} rows do not divide the {total} of an update", "choose a divisor")
        return typing(value)

    what = f"{rows.what}, from {source.shown}, of which `{made_in.text(quotient)}` follows"
    return (Target(rows.location, source.value, write, what),)


@dataclass(frozen=True)
class _Rows:
    """The rows of a micro-batch: where the program says them, in which lines, whether a quotient divides by them, and who typed them."""

    location: Location
    what: str
    lines: set[tuple[str, int]]
    divide: Callable[[PythonFile, cst.BinaryOperation], bool]
    source: Callable[[], Source | None]


def _rows_passed(more: Any, scene: Scene) -> _Rows:
    """Rows that a call is passed."""
    if not isinstance(more, CallArgument):
        raise refuse("the rows of a micro-batch are no argument of a call")
    file, call = which_call.the_call(more, scene)
    rows = argument_node(file, call, more.argument, more.position)
    expected = scene.facts.get(more.fact) if more.fact is not None else None
    return _Rows(
        file.location(call),
        more.argument,
        {(file.path, line) for line in file.lines_of(rows)} if rows is not None else set(),
        lambda where, quotient: rows is not None and _is_rows(where, quotient, file, rows),
        lambda: sources.Resolver(scene.project, sources.UNKNOWN if expected is None else expected).source(file, rows),  # type: ignore[arg-type]
    )


def _rows_drawn(scene: Scene) -> _Rows:
    """Rows that a function draws, by a number that a quotient may read, too."""
    target, source = _drawn(scene, shared=True)
    file = scene.project.python(target.location.file)
    function = file.function_at(target.location)
    first, last = file.lines_of(function) if function is not None else (target.location.line, target.location.line)

    def divide(where: PythonFile, quotient: cst.BinaryOperation) -> bool:
        divisor = _quietly(lambda: sources.Resolver(scene.project, source.value).source(where, quotient.right))
        return divisor is not None and (divisor.location, divisor.offset) == (source.location, source.offset)

    return _Rows(target.location, "rows", {(file.path, line) for line in range(first, last + 1)}, divide, lambda: source)


def worked_out(
    scene: Scene, file: PythonFile, node: cst.BaseExpression, depth: int = HANDED_ON
) -> tuple[PythonFile, cst.BinaryOperation] | None:
    """`a // b`, the name that is assigned it once, the property that returns it, or what the one caller of a function hands it."""
    scope = file.scope(node) if isinstance(node, cst.Name) else None
    if scope is not None:
        held = [each for each in scope[node.value] if hasattr(each, "node")]  # type: ignore[attr-defined]
        function, bound = file.function_around(node), held[0].node if len(held) == 1 else None
        if depth and function is not None and isinstance(bound, cst.Param):
            given = callers.only_argument(scene.project, file, function, bound)
            return None if given is None else worked_out(scene, *given, depth - 1)
        stored = [value for each in held if (value := assigned(file, each.node)) is not None]
        node = stored[0] if len(stored) == 1 else node
    if isinstance(node, cst.Attribute):
        returned = list(_returned(scene, node.attr.value))
        file, node = returned[0] if len(returned) == 1 else (file, node)
    return (file, node) if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide) else None


def _returned(scene: Scene, name: str) -> Iterator[tuple[PythonFile, cst.BaseExpression]]:
    """What properties of that name return in the program's classes."""
    for file in scene.project.parsed(name, "property"):
        for function in file.functions:
            if function.name.value == name and any((dotted(each.decorator) or "").endswith("property") for each in function.decorators):
                yield from ((file, each.value) for each in descendants(function, cst.Return) if each.value is not None)


def _is_rows(where: PythonFile, quotient: cst.BinaryOperation, file: PythonFile, rows: cst.BaseExpression) -> bool:
    """Whether the rows of a batch are what is divided by: the same text, or the same field of the object whose property this is."""
    if where is file and where.text(quotient.right) == file.text(rows):
        return True
    fields = [each.attr.value for each in (quotient.right, rows) if isinstance(each, cst.Attribute)]
    return len(fields) == 2 and fields[0] == fields[1] and dotted(quotient.right) == f"self.{fields[0]}"


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
        source = _quietly(lambda file=file, node=node: sources.Resolver(scene.project, expected).source(file, node))  # type: ignore[misc]
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


def _quietly(ask: Callable[[], Source | None]) -> Source | None:
    try:
        return ask()
    except UsageError:
        return None
