"""A trainer's interval may not be longer than its run, or than an epoch where it counts within one: nothing would be evaluated or saved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.kinds import CallArgument
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.expressions import argument_node, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.scene import Scene, Target

# Arguments that count epochs or steps, and those of the same call that say how many there are; less than one is no number of them.
LENGTHS = {"check_val_every_n_epoch": "max_epochs", "val_check_interval": "max_steps", "eval_steps": "max_steps", "save_steps": "max_steps"}
# Lightning ends with an error where the first is more than an epoch's batches, unless the second is None: then it counts all batches.
WITHIN_EPOCH = {"val_check_interval": "check_val_every_n_epoch"}
PARTS = ("limit_train_batches", "overfit_batches")  # of an epoch


def within(edit: CallArgument, scene: Scene, file: PythonFile, call: cst.Call, target: Target) -> Target:
    """`target`, which ends with the run that the same call is told, where somebody typed how long that is, and with the epoch."""
    limits = []
    if edit.argument in WITHIN_EPOCH.values() and _counts_all(file, call, edit.argument):
        raise refuse(f"{target.where}: it counts batches over the end of an epoch, and no epochs")
    length = LENGTHS.get(edit.argument)
    if length is not None and (typed := _typed(scene, file, call, length)) is not None and typed >= 1:
        limits.append((typed, f"{length} is {typed}"))
    other = WITHIN_EPOCH.get(edit.argument)
    counted = other is not None and type(target.current) is int and not _counts_all(file, call, other)
    if counted and (batches := _batches(scene, file, call)):
        limits.append((batches, f"an epoch has {batches} batches"))
    if not limits:
        return target
    most, why = min(limits)
    if type(target.current) is int and target.current >= most:
        raise refuse(f"{target.where}: {why}, so there is no room to grow")

    def write(value: Any) -> tuple[Any, ...]:
        if type(value) is int and value > most:
            raise refuse(f"{target.where}: {why}, so it would never happen")
        return target.write(value)

    return replace(target, write=write, most=most)


def _counts_all(file: PythonFile, call: cst.Call, name: str) -> bool:
    """Whether the call says that it counts on over the end of an epoch."""
    given = argument_node(file, call, name, None)
    return given is not None and literal(given) is None


def _batches(scene: Scene, file: PythonFile, call: cst.Call) -> int | None:
    """Whole batches that a rank trains on in an epoch; None where that was not seen. Raises `UsageError` where the call takes a part."""
    for name in PARTS:
        if argument_node(file, call, name, None) is not None:
            raise refuse(f"{file.location(call)}: {name} says how many batches an epoch has")
    loader = scene.facts.get("train_loader")
    if loader is None or loader.iterable or not loader.dataset_len or not loader.batch_size:
        return None
    return loader.dataset_len // (loader.batch_size * max(1, scene.summary.ranks)) or None


def _typed(scene: Scene, file: PythonFile, call: cst.Call, name: str) -> int | None:
    try:
        found = sources.Resolver(scene.project).argument(file, call, name, None)
    except UsageError:
        return None
    return found.value if found is not None and type(found.value) is int else None
