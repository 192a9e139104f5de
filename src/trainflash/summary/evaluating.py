"""What evaluations spend on batches that come about as training's do: made by the same functions, or waited for from workers."""

from __future__ import annotations

import numpy as np

from trainflash.schema import PHASES, EvaluationInput
from trainflash.stacks import Stack
from trainflash.trace import Samples

_LOADER = "torch/utils/data/dataloader.py"
_FETCHES, _WAITS = "__next__", "._get_data"


def evaluation_input(samples: Samples, kept: np.ndarray) -> EvaluationInput | None:
    """Shares of the sampled time; None where stacks were not recorded, or nothing was evaluated."""
    if samples.stack is None or not samples.stacks:
        return None
    whole = int(samples.weight_ns[kept].sum())
    known = kept & (samples.stack >= 0)
    training = [samples.stacks[number] for number in np.unique(samples.stack[known & (samples.phase == PHASES.index("Data"))])]
    made = {function for stack in training if (function := _deepest(stack)) is not None}
    waited_for = any(_in_loader(stack, _WAITS) for stack in training)
    evaluating = np.flatnonzero(known & (samples.phase == PHASES.index("Eval")))
    if not len(evaluating) or not whole:
        return None
    making = 0
    for index in evaluating:
        stack = samples.stacks[samples.stack[index]]
        waits = waited_for and _in_loader(stack, _WAITS)
        if waits or (_in_loader(stack, _FETCHES) and _deepest(stack) in made):
            making += int(samples.weight_ns[index])
    return EvaluationInput(making / whole)


def _in_loader(stack: Stack, function: str) -> bool:
    return any(frame.location.file.endswith(_LOADER) and frame.location.function.endswith(function) for frame in stack)


def _deepest(stack: Stack) -> tuple[str, str] | None:
    """File and function of the deepest frame that is no torch's and no Python's."""
    found = next((frame.location for frame in reversed(stack) if frame.kind in ("own", "library")), None)
    return None if found is None else (found.file, found.function)
