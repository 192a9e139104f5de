"""A trainer's interval may not be longer than its run: then nothing would be evaluated or saved at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.kinds import CallArgument
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.scene import Scene, Target

# Arguments that count epochs or steps, and those of the same call that say how many there are; less than one is no number of them.
LENGTHS = {"check_val_every_n_epoch": "max_epochs", "val_check_interval": "max_steps", "eval_steps": "max_steps", "save_steps": "max_steps"}


def within(edit: CallArgument, scene: Scene, file: PythonFile, call: cst.Call, target: Target) -> Target:
    """`target`, refused for a number beyond the run that the same call is told, where somebody typed how long that is."""
    length = LENGTHS.get(edit.argument)
    most = _typed(scene, file, call, length) if length is not None else None
    if most is None or most < 1:
        return target

    def write(value: Any) -> tuple[Any, ...]:
        if type(value) is int and value > most:
            raise refuse(f"{target.where}: {length} is {most}, so it would never happen")
        return target.write(value)

    return replace(target, write=write)


def _typed(scene: Scene, file: PythonFile, call: cst.Call, name: str) -> int | None:
    try:
        found = sources.Resolver(scene.project).argument(file, call, name, None)
    except UsageError:
        return None
    return found.value if found is not None and type(found.value) is int else None
