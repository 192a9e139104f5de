"""What must hold of the program before an argument of a call may get another value: one question for each argument that needs one."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.knobs.edits.network import recomputed
from trainflash.knobs.edits.ranks import sharded, wrapped
from trainflash.knobs.edits.watching import asked, raised
from trainflash.knobs.kinds import CallArgument
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.training import (
    early_handles,
    evaluated,
    fetched_ahead,
    fitting,
    half_types,
    left_in_workers,
    loading,
    pass_changes,
    pinned,
    scaled_loss,
    second_order,
    streams,
    without_gradients,
    without_workers,
    worker_state,
)

PRECISIONS = ("bf16", "fp16", "precision", "mixed_precision")  # of transformers, Lightning and accelerate
SCALED = ("fp16", "16-mixed")  # those that scale the loss


def check(edit: CallArgument, scene: Scene, file: PythonFile, call: cst.Call, expected: Any, resolver: sources.Resolver) -> None:
    """Raises `UsageError` where the program shows that this argument must stay; `expected`: what the run had, if it is known."""
    project, argument = scene.project, edit.argument
    if edit.calls == loading.LOADERS:
        loading.check(project, file, call, argument, scene.facts.get("device"))
        if argument == "pin_memory":
            pinned.check(project, file, call)
        if argument == "batch_size" and edit.at == "eval_loader":
            evaluated.whole(project, file, call)
    if argument == "dataloader_pin_memory":
        pinned.of_trainer(project)
    if argument.endswith("persistent_workers"):
        worker_state.of_one_pass(project, file, call)
        worker_state.kept(project)
    if edit.ends_workers:
        without_workers.check(project, call)
    elif argument.endswith("num_workers"):
        _more_workers(scene, file, call, expected or 0)
    if argument.endswith("prefetch_factor"):
        pass_changes.none(project, call)
        fetched_ahead.drawn_at_once(project)
    if edit.calls == wrapped.WRAPPERS:
        wrapped.check(project, argument)
    if edit.calls == sharded.WRAPPERS:
        sharded.check(project, file, call, argument)
    if argument in recomputed.SWITCHES:
        recomputed.whole(project)
    if edit.setting == "anomaly_mode" or argument == "detect_anomaly":
        raised.no_gradient_is_skipped(project)
    if edit.setting == "profiler" and argument in ("enabled", "schedule"):
        asked.by_nobody(project, file, call)
    if argument == "set_to_none":
        without_gradients.borne(project, file, call)
    if argument == "attn_implementation" or any(name.endswith("_sdp") for name in edit.calls):
        second_order.none(project)
    if argument == "foreach":
        fitting.rates_are_numbers(project, file, call)
    if argument == "mode" and fitting.COMPILE in edit.calls:
        fitting.backend_knows_modes(resolver, file, call)
    if argument == "dynamic":
        fitting.backend_knows_shapes(resolver, file, call)
        if fitting.COMPILE in edit.calls:
            fitting.compiles_alone(project, call)
    if argument in PRECISIONS:
        half_types.bears(project)
    if argument == "fp16":
        scaled_loss.check(project)


def check_written(edit: CallArgument, scene: Scene, target: Target) -> None:
    """Raises `UsageError` where the program shows that what stands at `target` must not become `edit.written`."""
    if edit.argument in PRECISIONS:
        half_types.was_single(target, edit.argument, str(edit.written))
        if edit.written in SCALED:
            scaled_loss.check(scene.project)


def _more_workers(scene: Scene, file: PythonFile, call: cst.Call, now: int) -> None:
    project = scene.project
    if not now:
        worker_state.begins_anew(project, file, call, scene.summary.versions.get("python"))
        streams.ends_in_no_error(project, call)
    if now < 2:
        early_handles.none(project, call)
        pass_changes.none(project, call)
        left_in_workers.stays_nowhere(project)
