"""Where a program's own loop says how many micro-batches make an update: the remainder in front of `step()`, or the range of a loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, string_value
from trainflash.knobs.scene import Scene

LOOPS = (cst.For, cst.While)
COUNTED = ("range", "islice", "itertools.islice")


def counts(scene: Scene) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """Expressions that are the number of micro-batches of an update, for each backward pass.

    Raises `UsageError` where the loop does not say it, or counts its passes for something else too: larger micro-batches are fewer.
    """
    regions = {id(region): (file, region) for file in scene.project.parsed("backward") for region in _regions(file)}
    found: list[tuple[PythonFile, cst.BaseExpression]] = []
    for file, region in regions.values():
        if any(called(call) == "step" for call in descendants(region, cst.Call)):
            found += [(file, node) for node in _remainders(file, region)]
        else:
            found.append((file, _passes(file, region)))
    if not found:
        raise refuse("no backward pass was found in the program")
    return found


def called(call: cst.Call) -> str:
    """The last name of the method that is called."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _regions(file: PythonFile) -> Iterator[cst.CSTNode]:
    """For each backward pass the loop around it, else the function or the file."""
    for call in file.calls:
        if called(call) == "backward":
            yield next((up for up in file.ancestors(call) if isinstance(up, (*LOOPS, cst.FunctionDef))), file.module)


def _passes(file: PythonFile, region: cst.CSTNode) -> cst.BaseExpression:
    """N of `for … in range(N)`, where the update follows the loop."""
    plain = isinstance(region, cst.For) and isinstance(region.iter, cst.Call) and dotted(region.iter.func) == "range"
    if not plain or len(region.iter.args) != 1 or region.iter.args[0].star:  # type: ignore[attr-defined,union-attr]
        raise refuse(f"{_here(file, region)}: how many micro-batches make an update is not written beside the backward pass")
    return region.iter.args[0].value  # type: ignore[attr-defined,union-attr,no-any-return]


def _remainders(file: PythonFile, region: cst.CSTNode) -> list[cst.BaseExpression]:
    """N of each `… % N` in a loop that also makes the updates."""
    counted = isinstance(region, cst.For) and any(dotted(call.func) in COUNTED for call in descendants(region.iter, cst.Call))
    if isinstance(region, cst.While) or counted:
        raise refuse(f"{_here(file, region)}: the loop counts micro-batches, so larger ones would make more updates of the same data")
    divided = [node for node in descendants(region, cst.BinaryOperation) if isinstance(node.operator, cst.Modulo) and not _shown(node)]
    if not divided:
        raise refuse(f"{_here(file, region)}: which micro-batch is the last of its update is not written as a remainder")
    for node in divided:
        up = file.parent(node)
        others = _sides(up, node) if isinstance(up, cst.Comparison) else []
        if any(literal(other) != 0 and file.text(node.right) not in file.text(other) for other in others):
            raise refuse(f"{file.location(up or node)}: `{file.text(up or node)}` names a micro-batch by its own number")
    _counts_nothing_else(file, region, divided)
    return [node.right for node in divided]


def _counts_nothing_else(file: PythonFile, region: cst.CSTNode, divided: list[cst.BinaryOperation]) -> None:
    """Raises `UsageError` where the number of the micro-batch is compared with anything but their number in a pass over the data."""
    names = {name.value for node in divided for name in descendants(node.left, cst.Name)}
    for compared in descendants(region, cst.Comparison):
        if any(file.inside(node, compared) for node in divided) or "len(" in file.text(compared):
            continue
        if names & {name.value for name in descendants(compared, cst.Name)}:
            raise refuse(f"{file.location(compared)}: `{file.text(compared)}` counts micro-batches, which would become fewer")


def _sides(compared: cst.Comparison, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [side for side in (compared.left, *(each.comparator for each in compared.comparisons)) if side is not node]


def _shown(node: cst.BinaryOperation) -> bool:
    """Whether `%` fills a text."""
    return isinstance(node.left, cst.FormattedString) or string_value(node.left) is not None


def _here(file: PythonFile, region: cst.CSTNode) -> object:
    return file.path if isinstance(region, cst.Module) else file.location(region)
