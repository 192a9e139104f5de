"""Padding to the longest sample of each batch instead of a fixed width, where the program itself makes the batch."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.batches.collating import collate_function, item_function
from trainflash.knobs.edits.padding import again
from trainflash.knobs.kinds import PadToLongest
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import masked, padding, samples

MAKERS = tuple(f"{module}.{name}" for module in ("torch", "numpy") for name in ("zeros", "ones", "full", "empty"))
FIXED = (cst.Name, cst.Attribute, cst.Integer)
NEW_NAME = "longest"


def pad_to_longest(edit: PadToLongest, scene: Scene) -> tuple[Target, ...]:
    """The fixed width in the training loader's collate function. Raises `UsageError` where the lengths cannot be told."""
    try:
        file, function = collate_function(scene)
    except UsageError:
        _not_by_sample(scene)
        raise
    file, function = _filling(scene, file, function)
    here = file.location(function)
    batch = samples.Batch(file, function)
    spots, lengths = _spots(batch)
    if not spots or not lengths:
        _not_by_sample(scene)
        raise refuse(f"{here}: no row is filled by `row[: len(x)] = x` in a loop over the batch")
    names = {file.text(width) for width in spots}
    if len(names) != 1:
        raise refuse(f"{here}: allocations have different widths")
    padding.rows_as_they_are(batch)
    width = spots[0]
    place = _assigned_once(batch, width)
    for where, around, fixed in _typed(scene, file, function, width, place):
        padding.network_of_any_width(scene, where, around, fixed)
    _no_other_use(batch, width, spots, place)
    masked.leaves_out(scene.project)
    longest = samples.longest(lengths)
    bound = file.text(place if place is not None else width)
    called = isinstance(place if place is not None else width, cst.Call)
    if called or padding.cuts(function) or any(each.cut for each in lengths):
        longest = f"min({bound}, {longest})"
    splices = _written(batch, [place] if place is not None else spots, lengths, longest)
    return (Target(here, None, lambda value: splices, f"{function.name.value} at {here}, which pads to {file.text(width)}", longest),)


def _filling(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> tuple[PythonFile, cst.FunctionDef]:
    """Of the function and those that it calls, the only one that makes rows and fills them; else the function itself."""
    found = []
    for where, each in callees.reached(scene.project, [(file, function)]):
        with contextlib.suppress(UsageError):
            spots, lengths = _spots(samples.Batch(where, each))
            found += [(where, each)] if spots and lengths else []
    return found[0] if len(found) == 1 else (file, function)


def _spots(batch: samples.Batch) -> tuple[list[cst.BaseExpression], list[samples.Length]]:
    """Where the width stands: in what allocates rows, and in `WIDTH - len(x)`; and the lengths of what is padded."""
    lengths, places = _fills(batch)
    allocated = [width for call in descendants(batch.function.body, cst.Call) for width in _widths(batch, call, places)]  # type: ignore[arg-type]
    if not allocated:
        lengths = []
    for node in descendants(batch.function.body, cst.BinaryOperation):
        found = batch.length(node.right) if again.pads_one(batch.file, node) else None
        if found is not None:
            more = again.added(batch.file, node)[1]
            allocated.append(node.left)
            lengths.append(replace(found, text=f"{found.text} + {more}" if more else found.text))
    return allocated, lengths


def _widths(batch: samples.Batch, call: cst.Call, fills: dict[str, set[int]]) -> list[cst.BaseExpression]:
    """The filled dimensions of `torch.zeros(n, WIDTH)`, `torch.full((n, WIDTH), x)` and the like, where each is a plain name or number.

    `fills`: along which dimensions each tensor's rows are filled.
    """
    if batch.file.full_name(call.func) not in MAKERS:
        return []
    sizes: list[Any] = [arg.value for arg in call.args if arg.keyword is None]
    if sizes and isinstance(sizes[0], (cst.Tuple, cst.List)):
        sizes = [element.value for element in sizes[0].elements]
    elif (batch.file.full_name(call.func) or "").endswith("full"):
        return []
    if len(sizes) < 2 or not _counts(batch, sizes[0]) or not fills:
        return []
    assign = batch.file.parent(call)
    places = fills.get(dotted(assign.targets[0].target) or "") if isinstance(assign, cst.Assign) else None
    if places is None or len(sizes) == 2:
        places = set().union(*fills.values())
        if len(sizes) > 2 and len(places) > 1:
            raise refuse(f"{batch.file.location(call)}: rows are filled along different dimensions")
        places = {min(places) if len(sizes) > 2 else 1}
    widths = [sizes[place] for place in sorted(places) if place < len(sizes)]
    known = all(isinstance(each, (*FIXED, cst.Call)) and dotted(getattr(each, "func", None)) not in ("max", "min") for each in widths)
    return widths if known else []


def _counts(batch: samples.Batch, size: cst.BaseExpression) -> bool:
    """`len(batch)`, or a local name of it."""
    if isinstance(size, cst.Name):
        values = [
            each.value for each in descendants(batch.function.body, cst.Assign) if any(dotted(t.target) == size.value for t in each.targets)
        ]
        size = values[0] if len(values) == 1 else size
    return isinstance(size, cst.Call) and dotted(size.func) == "len"


def _fills(batch: samples.Batch) -> tuple[list[samples.Length], dict[str, set[int]]]:
    """The lengths to which rows are filled, as in `row[: len(x)] = …` and `rows[i, : len(x)] = …`, and along which dimensions, by names."""
    lengths: list[samples.Length] = []
    fills: dict[str, set[int]] = {}
    made = [each for each in descendants(batch.function.body, cst.Assign) if isinstance(each.value, cst.Call)]
    whole = {dotted(each.targets[0].target) for each in made if batch.file.full_name(each.value.func) in MAKERS}  # type: ignore[union-attr]
    for assign in descendants(batch.function.body, cst.Assign):
        for target in (each.target for each in assign.targets if isinstance(each.target, cst.Subscript)):
            name, last = dotted(target.value) or "", target.slice[-1].slice
            if isinstance(last, cst.Slice) and last.lower is None and last.upper is not None:
                found = [(place, batch.length(end)) for place, part in enumerate(target.slice) if (end := _end(part)) is not None]
                same = [(place, length) for place, length in found if length is not None and length == found[-1][1]]
                lengths += [length for _, length in same[-1:]]
                if same:
                    fills.setdefault(name, set()).update(place + (0 if name in whole else 1) for place, _ in same)
            elif isinstance(last, cst.Index) and name in whole:
                _columns(batch, assign, target)
    return lengths, fills


def _end(part: cst.SubscriptElement) -> cst.BaseExpression | None:
    """`n` of `[: n]`."""
    return part.slice.upper if isinstance(part.slice, cst.Slice) and part.slice.lower is None else None


def _columns(batch: samples.Batch, assign: cst.Assign, target: cst.Subscript) -> None:
    """Raises `UsageError` for `rows[i, n] = …`: a narrower batch may have no such column."""
    if len(target.slice) > 1 and not any(isinstance(part.slice, cst.Slice) for part in target.slice):
        raise refuse(
            f"{batch.file.location(assign)}: `{short(batch.file.text(assign))}` writes to a place that a narrower batch may not have"
        )


def _assigned_once(batch: samples.Batch, width: cst.BaseExpression) -> cst.BaseExpression | None:
    """What the width's local name is assigned in the function, where that is one plain name, number or call of the program's."""
    if not isinstance(width, cst.Name):
        return None
    file = batch.file
    found = [
        assign.value
        for assign in descendants(batch.function.body, cst.Assign)
        if any(dotted(target.target) == width.value for target in assign.targets)
    ]
    if len(found) > 1:
        raise refuse(f"{file.location(found[1])}: {width.value} is assigned more than once")
    if found and isinstance(found[0], cst.IfExp):
        fixed = [side for side in (found[0].body, found[0].orelse) if isinstance(side, FIXED)]
        found = fixed if len(fixed) == 1 else found
    computed = found and (not isinstance(found[0], (*FIXED, cst.Call)) or dotted(getattr(found[0], "func", None)) in ("max", "min"))
    if computed:
        raise refuse(f"{file.location(found[0])}: {width.value} is computed already: `{file.text(found[0])}`")
    return found[0] if found else None


def _typed(
    scene: Scene, file: PythonFile, function: cst.FunctionDef, width: cst.BaseExpression, place: cst.BaseExpression | None
) -> list[tuple[PythonFile, cst.FunctionDef, cst.BaseExpression]]:
    """The fixed width, with the function that says it: the collate function itself, or the one that it asks for the width."""
    asked = place if place is not None else width
    if not isinstance(asked, cst.Call):
        return [(file, function, width), *([(file, function, place)] if place is not None else [])]
    made = [
        (where, each, side)
        for where, each in callees.meant(scene.project, file, asked)
        for node in descendants(each.body, cst.Return)
        for side in ([node.value.body, node.value.orelse] if isinstance(node.value, cst.IfExp) else [node.value])
        if isinstance(side, FIXED) and dotted(side) != "None" and not _local(each, side)
    ]
    if not made:
        raise refuse(f"{file.location(asked)}: the width is computed: `{short(file.text(asked))}`")
    return made


def _local(function: cst.FunctionDef, side: cst.BaseExpression) -> bool:
    stored = [target.target for assign in descendants(function.body, cst.Assign) for target in assign.targets]
    return any(dotted(target) == dotted(side) for target in stored) or dotted(side) in {p.name.value for p in function.params.params}


def _no_other_use(batch: samples.Batch, width: cst.BaseExpression, spots: list[Any], place: cst.BaseExpression | None) -> None:
    """Raises `UsageError` where the function uses its width for more than rows and cuts."""
    file, function, text = batch.file, batch.function, batch.file.text(width)
    for node in descendants(function.body, (*FIXED, cst.Call)):
        if file.text(node) != text or node is place or any(file.inside(node, spot) for spot in spots):
            continue
        up = file.parent(node)
        cut = isinstance(up, cst.Arg) and dotted(getattr(file.parent(up), "func", None)) == "min" and batch.length(file.parent(up))  # type: ignore[arg-type]
        field = isinstance(up, cst.Attribute) and up.attr is node
        around = next((each for each in file.ancestors(node) if not isinstance(each, (cst.UnaryOperation, cst.BinaryOperation))), None)
        cut = cut or isinstance(around if place is None else file.parent(up) if isinstance(up, cst.UnaryOperation) else up, cst.Slice)
        if not isinstance(up, cst.AssignTarget) and not field and not cut:
            raise refuse(f"{file.location(node)}: {text} has another use in {function.name.value}")


def _written(batch: samples.Batch, spots: list[Any], lengths: list[samples.Length], longest: str) -> tuple[Splice, ...]:
    """`longest` in place of the width; where that is asked for in a loop, it is worked out once in front."""
    file = batch.file
    first = min(batch.place(node) for node in spots)
    for each in lengths:
        known = next((number for name, number in batch.lists.items() if name in _words(each.batch)), -1)
        if known >= first:
            raise refuse(f"{file.location(spots[0])}: the width is needed before `{each.batch}` is known")
    if not any(True for node in spots for _ in batch.loops(node)):
        return tuple(Splice(file.path, *file.outer_span(node), longest) for node in spots)
    taken = {node.value for node in descendants(batch.function, cst.Name)}
    if NEW_NAME in taken:
        raise refuse(f"{file.location(spots[0])}: the name {NEW_NAME} means something else in {batch.function.name.value}")
    statement = batch.body[first]
    if not isinstance(batch.function.body, cst.IndentedBlock):
        raise refuse(f"{file.location(statement)}: {batch.function.name.value} is written in one line")
    start = file.span(statement)[0]
    added = Splice(file.path, start, start, f"{NEW_NAME} = {longest}{file.newline}{file.indent(statement)}")
    return (added, *(Splice(file.path, *file.outer_span(node), NEW_NAME) for node in spots))


def _words(text: str) -> set[str]:
    return {node.value for node in descendants(cst.parse_expression(text), cst.Name)}


def _not_by_sample(scene: Scene) -> None:
    """Raises `UsageError` where the data set pads each sample alone: there nobody knows the longest of its batch."""
    found = item_function(scene)
    for file, function in callees.reached(scene.project, [found]) if found is not None else ():
        for node in descendants(function.body, (cst.BinaryOperation, cst.Arg)):
            if again.pads_one(file, node):
                raise refuse(
                    f"{file.location(node)}: `{short(file.text(node))}` pads each sample by itself, before the longest of its "
                    "batch is known: it has to be padded in a collate function"
                )
