"""What a program does with each micro-batch that would be done less often, or otherwise, with fewer and larger ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import argument_node, given_to, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, targets_of
from trainflash.knobs.training.backward_loops import BackwardLoop

WATCHES = re.compile(r"prof|bar|progress|tqdm|timer|meter")  # whose step or update changes nothing in the training
AVERAGES = re.compile(r"(^|[._])(ema|swa|polyak|averag\w*|scaler)([._]|$)")
SCHEDULES = re.compile(r"lr_scheduler\.\w+$|get_\w*schedule\w*$|Scheduler$|LR$")
OVER_ROWS = ("logsumexp", "log_softmax", "softmax")
ENTROPIES = ("CrossEntropyLoss", "cross_entropy", "nll_loss")


def steps_once(region: BackwardLoop, guarded: Iterable[cst.CSTNode]) -> None:
    """Raises `UsageError` where the loop steps a schedule, or averages weights, beside each backward and not with the update.

    `guarded` are the calls that only the last micro-batch of an update makes.
    """
    with_update = list(guarded)
    for file, call in region.each(cst.Call):
        name, method = dotted(call.func) or "", callees.called_name(call)  # type: ignore[attr-defined,arg-type]
        stepped = isinstance(call.func, cst.Attribute) and method == "step" and not WATCHES.search(name.lower())  # type: ignore[attr-defined]
        averaged = method == "update_parameters" or (method.startswith("update") and AVERAGES.search(name.lower()) is not None)
        averaged = averaged or (AVERAGES.search(method.removeprefix("update_").lower()) is not None and "update" in method)
        if (stepped or averaged) and not any(call is each for each in with_update):
            raise refuse(f"{file.location(call)}: `{short(file.text(call))}` is done for each micro-batch, which would become fewer")


def of_rows_alone(region: BackwardLoop) -> None:
    """Raises `UsageError` where the loss sets the rows of a micro-batch against each other: others would stand beside them."""
    functions = [(region.file, region.loop), *region.helpers]
    calls = [(file, call) for file, call in region.each(cst.Call)]
    meant = [each for file, call in calls for each in callees.meant(region.project, file, call)]  # type: ignore[arg-type]
    for file, part in [*functions, *callees.reached(region.project, [*meant, *callees.forwards(region.project)])]:
        for call in descendants(part, cst.Call):
            name = callees.called_name(call)  # type: ignore[arg-type]
            if name in OVER_ROWS and _over_first(file, call):  # type: ignore[arg-type]
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` is taken over the rows of a micro-batch")
            if name in ENTROPIES or "criterion" in name:
                for arg in call.args:  # type: ignore[attr-defined]
                    if _numbers_rows(file, arg.value):
                        told = f"`{short(file.text(arg.value))}` numbers the rows"
                        raise refuse(f"{file.location(call)}: {told}, which are set against each other within a micro-batch")


def _over_first(file: PythonFile, call: cst.Call) -> bool:
    own = (file.full_name(call.func) or "").startswith("torch.")
    dim = argument_node(file, call, "dim", 1 if own else 0)
    return dim is not None and literal(dim) == 0 and not isinstance(literal(dim), bool)


def _numbers_rows(file: PythonFile, node: cst.BaseExpression, depth: int = 2) -> bool:
    """Whether a value is `torch.arange` of a length, itself or by a name."""
    for call in descendants(node, cst.Call):
        if file.full_name(call.func) == "torch.arange":  # type: ignore[attr-defined]
            return True
    made = given_to(file.function_around(node) or file.module, node.value) if isinstance(node, cst.Name) and depth else []
    return any(_numbers_rows(file, each, depth - 1) for each in made)


def schedules_count_updates(project: Project, numbers: list[tuple[PythonFile, cst.BaseExpression]]) -> None:
    """Raises `UsageError` where a schedule is as long as there are batches, not divided by the number of them in an update."""
    said = {file.text(node).split(".")[-1] for file, node in numbers}
    for file in project.parsed():
        loaders = {name for node in file.each(cst.Assign) if _makes_loader(node.value) for name in _names(node)}
        long = {name for name in _derived(file, loaders, said)}
        for call in file.calls:
            if not SCHEDULES.search(file.full_name(call.func) or ""):
                continue
            for arg in call.args:
                if _counts(file, arg.value, loaders, long, said):
                    raise refuse(f"{file.location(arg)}: `{short(file.text(arg))}` counts micro-batches, which would become fewer")


def _makes_loader(value: cst.BaseExpression) -> bool:
    return any(callees.called_name(call).endswith("DataLoader") for call in descendants(value, cst.Call))  # type: ignore[arg-type]


def _names(node: cst.Assign) -> Iterator[str]:
    yield from (name for target in targets_of(node) if (name := dotted(target)) is not None)


def _derived(file: PythonFile, loaders: set[str], said: set[str]) -> set[str]:
    """Variables that are made of the number of batches."""
    found: set[str] = set()
    for _ in range(3):  # one made of another
        for node in file.nodes:
            if isinstance(node, cst.Assign) and _counts(file, node.value, loaders, found, said):
                found |= set(_names(node))
    return found


def _counts(file: PythonFile, value: cst.BaseExpression, loaders: set[str], long: set[str], said: set[str]) -> bool:
    """Whether a number of batches is in `value`, and the number of them in an update is not."""
    names = {name for each in descendants(value, (cst.Name, cst.Attribute)) if (name := dotted(each)) is not None}
    if {name.split(".")[-1] for name in names} & said or any(each.value in said for each in descendants(value, cst.Integer)):  # type: ignore[attr-defined]
        return False
    lengths = [
        dotted(call.args[0].value) or ""
        for call in descendants(value, cst.Call)
        if dotted(call.func) == "len" and len(call.args) == 1  # type: ignore[attr-defined]
    ]
    return bool(names & long) or any(each in loaders or "loader" in each.lower() for each in lengths)
