"""What must hold of the program before a call may be edited: the questions that a knob file names under `checks`, each with its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.knobs.edits.network import recomputed
from trainflash.knobs.edits.watching import raised
from trainflash.knobs.kinds import CallArgument, ReplaceCall
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.training import (
    early_handles,
    fetched_ahead,
    half_types,
    left_in_workers,
    loading,
    pass_changes,
    without_workers,
    worker_state,
)


@dataclass(frozen=True)
class Asked:
    """The call that is to be edited; `expected` is what the run had there, if it is known."""

    edit: CallArgument | ReplaceCall
    scene: Scene
    file: PythonFile
    call: cst.Call
    expected: Any = None


def all_hold(asked: Asked) -> None:
    """Raises `UsageError` with the reason of the first of the edit's checks that does not hold."""
    for name in asked.edit.checks:
        CHECKS[name](asked)


def may_become_written(edit: CallArgument, target: Target) -> None:
    """Raises `UsageError` where what stands at `target` was chosen by the program and must not become `edit.written`."""
    if "bears_half" in edit.checks:
        half_types.was_single(target, edit.argument, str(edit.written))


def _data_on_host(asked: Asked) -> None:
    loading.on_host(asked.scene.project, asked.file, asked.call, asked.edit.argument, asked.scene.facts.get("device"))  # type: ignore[union-attr]


def _same_in_kept_workers(asked: Asked) -> None:
    project = asked.scene.project
    for other in project.parsed("DataLoader"):
        loading.one_iterator(other, other.module)
    worker_state.of_one_pass(project, asked.file, asked.call)
    worker_state.kept(project)


def _same_in_workers(asked: Asked) -> None:
    project, now = asked.scene.project, asked.expected or 0
    if not now:
        worker_state.begins_anew(project, asked.file, asked.call, asked.scene.summary.versions.get("python"))
    if now < 2:
        early_handles.none(project, asked.call)
        pass_changes.none(project, asked.call)
        left_in_workers.stays_nowhere(project)


def _same_when_prefetched(asked: Asked) -> None:
    pass_changes.none(asked.scene.project, asked.call)
    fetched_ahead.drawn_at_once(asked.scene.project)


CHECKS: Mapping[str, Callable[[Asked], None]] = {
    "data_on_host": _data_on_host,  # the data set does not lie on the device, which workers and pinning cannot use
    "same_in_workers": _same_in_workers,  # what samples share with the main process is not changed by making them
    "same_in_kept_workers": _same_in_kept_workers,  # nor in workers that go on from pass to pass
    "same_without_workers": lambda asked: without_workers.check(asked.scene.project, asked.call),
    "same_when_prefetched": _same_when_prefetched,  # nothing is drawn or changed between a batch's making and its use
    "recomputes_only": lambda asked: recomputed.whole(asked.scene.project),  # what is recomputed does nothing besides
    "no_gradient_is_skipped": lambda asked: raised.no_gradient_is_skipped(asked.scene.project),  # nobody catches what anomaly mode raises
    "bears_half": lambda asked: half_types.bears(asked.scene.project),  # nothing asks for float32, and no precision was chosen
}
