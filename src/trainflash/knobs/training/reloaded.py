"""Loaders that a trainer asks for again: whether a data module gives the same ones each time, so that the first will do."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import purity
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, targets_of
from trainflash.knobs.training import data_sets, worker_copies

METHODS = ("train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader")
ONCE = (*callees.CONSTRUCTORS, "setup", "prepare_data", *METHODS)  # they run before the loaders are asked for, or give them
MOVES = ("current_epoch", "global_step", "epoch", "num_epoch", "epochs_done")  # what goes on with the training
DRAWS = ("random.", "numpy.random.", "torch.rand", "torch.normal", "secrets.", "time.", "uuid.")
SPLITS = ("torch.utils.data.random_split", "sklearn.model_selection.train_test_split")
SEEDS = ("generator", "random_state")
STREAMS = purity.SEEDED | {"torch.Generator"}


def same_each_time(project: Project) -> None:
    """Raises `UsageError` where what the loaders are made of may be another when they are asked for again."""
    starts = [each for name in METHODS for each in callees.defined(project, name) if each[0].class_of(each[1]) is not None]
    reached = list(callees.reached(project, starts))
    for file, function in reached:
        for node in descendants(function.body, cst.CSTNode):
            if (reason := _differs(file, node)) is not None:
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` {reason}, so loaders that are made again may differ")
    for owner in data_sets.classes(project):
        worker_copies.counts_nothing(owner)
    read = {node.attr.value for file, function in reached for node in _own_fields(function)}
    for file, node, target in _written_later(project, reached):
        if target.attr.value in read:
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` changes what the loaders are made of")


def _differs(file: PythonFile, node: cst.CSTNode) -> str | None:
    """Why `node` may give something else the next time."""
    if isinstance(node, cst.Attribute) and node.attr.value in MOVES:
        return "goes on with the training"
    if isinstance(node, (cst.Global, cst.Nonlocal)):
        return "is kept from one time to the next"
    if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Attribute):
        return "goes on each time"
    if not isinstance(node, cst.Call):
        return None
    name = file.full_name(node.func) or ""
    if name == "next":
        return "goes on each time"
    if name in STREAMS and (node.args or name == "torch.Generator"):
        return "begins its random numbers anew" if _lives_on(file, node) else None
    unseeded = name in SPLITS and all(keyword(node, each) is None for each in SEEDS)
    return "draws by chance" if unseeded or name.startswith(DRAWS) else None


def _lives_on(file: PythonFile, node: cst.Call) -> bool:
    """Whether a stream that is made here draws for the loader or its samples, not only for what is made once."""
    around = (up for up in file.ancestors(node) if isinstance(up, cst.Assign) or (isinstance(up, cst.Arg) and up.keyword is not None))
    first = next(around, None)
    if isinstance(first, cst.Arg):
        return _draws_later(file, first)
    name = dotted(first.targets[0].target) if isinstance(first, cst.Assign) else None
    function = file.function_around(node)
    if name is None or function is None or name.startswith("self."):
        return name is not None
    handed = (arg for call in descendants(function.body, cst.Call) for arg in call.args if dotted(arg.value) == name)  # type: ignore[attr-defined]
    return any(_draws_later(file, arg) for arg in handed)


def _draws_later(file: PythonFile, arg: cst.Arg) -> bool:
    """Whether a stream is handed over by an argument for streams, other than to what splits a data set at once."""
    call = file.parent(arg)
    named = arg.keyword is not None and arg.keyword.value in SEEDS
    return named and isinstance(call, cst.Call) and (file.full_name(call.func) or "") not in SPLITS


def _own_fields(function: cst.FunctionDef) -> Iterator[cst.Attribute]:
    """Attributes that are read from the object itself."""
    for node in descendants(function.body, cst.Attribute):
        if dotted(node.value) == "self":  # type: ignore[attr-defined]
            yield node  # type: ignore[misc]


def _written_later(project: Project, reached: list[Function]) -> Iterator[tuple[PythonFile, cst.CSTNode, cst.Attribute]]:
    """Assignments to attributes in functions that run neither before the loaders are made nor while they are."""
    known = {id(function) for _, function in reached}
    for file in project.parsed():
        for function in file.functions:
            if function.name.value in ONCE or id(function) in known:
                continue
            for node in descendants(function.body, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
                for target in targets_of(node):
                    if isinstance(target, cst.Attribute) and file.function_around(node) is function:
                        yield file, node, target
