"""Where a program's own loop says how many micro-batches make an update: what a counter is divided by or compared with in front of
`step()`, or the range of a loop."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.callees import method_name
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, parameter, string_value
from trainflash.knobs.training import each_micro_batch
from trainflash.knobs.training.backward_loops import BackwardLoop, backward_loops

OTHERS = re.compile(r"sched|prof")
COUNTED = ("range", "islice", "itertools.islice")
Places = list[tuple[PythonFile, cst.BaseExpression]]


def counts(project: Project, is_number: Callable[[PythonFile, cst.BaseExpression], bool]) -> Places:
    """Expressions that are the number of micro-batches of an update, for each backward pass; `is_number` tells it from others.

    Raises `UsageError` where the loop does not say it, or counts micro-batches for something else too: larger ones are fewer.
    """
    regions = {id(region.loop): region for region in backward_loops(project)}
    if not regions:
        raise refuse("no backward pass was found in the program")
    found: Places = []
    for region in regions.values():
        updates = any(makes_updates(project, call) for _, call in region.each(cst.Call))  # type: ignore[arg-type]
        each_micro_batch.of_rows_alone(region)
        found += _remainders(region, is_number) if updates else [_passes(region, is_number)]
        if not updates:
            each_micro_batch.steps_once(region, ())
    each_micro_batch.schedules_count_updates(project, found)
    return found


def makes_updates(project: Project, call: cst.Call, depth: int = 0) -> bool:
    """Whether `call` is an optimizer's step, or calls a function of the program that makes one; a scheduler's or profiler's is none."""
    if method_name(call) == "step":
        return not OTHERS.search((dotted(call.func) or "").lower())
    name = (dotted(call.func) or "").split(".")[-1]
    return bool(name) and depth < 2 and any(
        makes_updates(project, inner, depth + 1)
        for file in project.parsed(name, "step")
        for function in file.functions
        if function.name.value == name
        for inner in descendants(function.body, cst.Call)
    )  # fmt: skip


def _passes(region: BackwardLoop, is_number: Callable[[PythonFile, cst.BaseExpression], bool]) -> tuple[PythonFile, cst.BaseExpression]:
    """N of `for … in range(N)` or `islice(batches, N)`, also where a caller hands that over, and the update follows the loop."""
    counted = _handed(region) if isinstance(region.loop, cst.For) else None
    if counted is not None:
        file, call = counted
        taken = {"range": 0, "islice": 1}.get(callees.called_name(call), -1)
        plain = 0 <= taken == len(call.args) - 1 and not any(arg.star or arg.keyword for arg in call.args)
        if plain and is_number(file, call.args[taken].value):
            return file, call.args[taken].value
    raise refuse(f"{region.here()}: the number of micro-batches of an update is not written beside the backward pass")


def _handed(region: BackwardLoop) -> tuple[PythonFile, cst.Call] | None:
    """The call whose result the loop goes over: in its head, or the argument of the one call of the function around it."""
    file, node = region.file, region.loop.iter  # type: ignore[union-attr]
    function = file.function_around(region.loop)
    param = parameter(function, dotted(node))
    if param is not None:
        found = callers.only_argument(region.project, file, function, param)  # type: ignore[arg-type]
        file, node = found if found is not None else (file, node)
    return (file, node) if isinstance(node, cst.Call) else None


def _remainders(region: BackwardLoop, is_number: Callable[[PythonFile, cst.BaseExpression], bool]) -> Places:
    """N of each `… % N`, and of `count == N`, in a loop that also makes the updates."""
    loop = region.loop
    if isinstance(loop, cst.While) or (
        isinstance(loop, cst.For) and any(dotted(call.func) in COUNTED for call in descendants(loop.iter, cst.Call))
    ):
        raise refuse(f"{region.here()}: the loop counts micro-batches, so larger ones would make more updates of the same data")
    tests = [(file, test, *_divided(file, test)) for file, test in region.each((cst.BinaryOperation, cst.Comparison))]
    counted = [(file, test, names, node) for file, test, names, node in tests if node is not None]
    tied = [each for each in counted if is_number(each[0], each[3])]
    numbers = [(file, test, names, node) for file, test, names, node in tied if not _of_updates(region, names, tied)]
    if not numbers:
        raise refuse(f"{region.here()}: which micro-batch is the last of its update is not told by their number")
    for file, test, _, node in numbers:
        up = file.parent(test)
        others = _sides(up, test) if isinstance(test, cst.BinaryOperation) and isinstance(up, cst.Comparison) else []
        if any(literal(other) != 0 and file.text(node) not in file.text(other) for other in others):
            raise refuse(f"{file.location(test)}: `{file.text(up or test)}` names a micro-batch by its own number")
    _nothing_else(region, numbers)
    each_micro_batch.steps_once(region, (node for file, node in region.each(cst.Call) if _guarded(region, file, node, tied)))
    return [(file, node) for file, _, _, node in numbers]


def _divided(file: PythonFile, test: cst.CSTNode) -> tuple[set[str], cst.BaseExpression | None]:
    """The names in `… % N` or `name == N`, and N; None for anything else."""
    if isinstance(test, cst.BinaryOperation):
        text = isinstance(test.left, cst.FormattedString) or string_value(test.left) is not None
        return (set(), None) if text or not isinstance(test.operator, cst.Modulo) else (_names(test.left), test.right)
    plain = isinstance(test, cst.Comparison) and len(test.comparisons) == 1 and dotted(test.left) is not None
    if plain and isinstance(test.comparisons[0].operator, (cst.Equal, cst.GreaterThanEqual)):  # type: ignore[attr-defined]
        return {dotted(test.left) or ""}, test.comparisons[0].comparator  # type: ignore[attr-defined]
    return set(), None


def _names(node: cst.CSTNode) -> set[str]:
    return {name for each in descendants(node, (cst.Name, cst.Attribute)) if (name := dotted(each)) is not None and name != "self"}


def _counters(region: BackwardLoop) -> set[str]:
    """What the loop numbers its micro-batches by: the first name of `for i, … in enumerate(…)`."""
    loop = region.loop
    if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call) or dotted(loop.iter.func) != "enumerate":
        return set()
    return _names(loop.target.elements[0].value) if isinstance(loop.target, cst.Tuple) else set()


def _of_updates(region: BackwardLoop, names: set[str], tied: list) -> bool:
    """Whether `names` are counted up with each update only: behind what tells the last micro-batch, or where the step is made."""
    added = [(file, node) for file, node in region.each(cst.AugAssign) if dotted(node.target) in names]  # type: ignore[attr-defined]
    if added:
        return all(_guarded(region, file, node, tied) for file, node in added)
    if names & _counters(region):
        return False
    for file in region.project.parsed("step"):
        for function in file.functions:
            steps = any(method_name(call) == "step" for call in descendants(function.body, cst.Call))
            if steps and any(dotted(node.target) in names for node in descendants(function.body, cst.AugAssign)):
                return True
    return False


def _guarded(region: BackwardLoop, file: PythonFile, node: cst.CSTNode, tied: list) -> bool:
    """Whether a condition made of a tied number stands around `node`, or left the loop in front of it."""
    for up in file.ancestors(node):
        if isinstance(up, cst.If) and _holds(file, up.test, tied) and not file.inside(node, up.test):
            return True
        if isinstance(up, cst.IndentedBlock):
            before = [line for line in up.body if isinstance(line, cst.If) and file.span(line)[0] < file.span(node)[0]]
            if any(_holds(file, line.test, tied) and any(descendants(line.body, cst.Continue)) for line in before):
                return True
        if up is region.loop:
            return False
    return False


def _holds(file: PythonFile, test: cst.CSTNode, tied: list) -> bool:
    return any(where is file and file.inside(each, test) for where, each, _, _ in tied)


def _nothing_else(region: BackwardLoop, numbers: list) -> None:
    """Raises `UsageError` where a counter of micro-batches is compared with anything but their number in a pass over the data."""
    names = set().union(*(names for _, _, names, _ in numbers)) | _counters(region)
    for file, test in region.each((cst.Comparison, cst.BinaryOperation)):
        if isinstance(test, cst.BinaryOperation) and _divided(file, test)[1] is None:
            continue
        told = any(where is file and (file.inside(each, test) or file.inside(test, each)) for where, each, _, _ in numbers)
        if not told and "len(" not in file.text(test) and names & _names(test):
            raise refuse(f"{file.location(test)}: `{file.text(test)}` counts micro-batches, which would become fewer")


def _sides(compared: cst.Comparison, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [side for side in (compared.left, *(each.comparator for each in compared.comparisons)) if side is not node]
