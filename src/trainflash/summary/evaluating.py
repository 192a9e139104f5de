"""What evaluations spend on making batches in the way that training makes them."""

from __future__ import annotations

import numpy as np

from trainflash.schema import PHASES, EvaluationInput
from trainflash.stacks import Stack
from trainflash.trace import Samples

_LOADER = "torch/utils/data/dataloader.py"
_FETCHES = ("__next__",)


def evaluation_input(samples: Samples, kept: np.ndarray) -> EvaluationInput | None:
    """Shares of the sampled time; None where stacks were not recorded, or nothing was evaluated."""
    if samples.stack is None or not samples.stacks:
        return None
    whole = int(samples.weight_ns[kept].sum())
    known = kept & (samples.stack >= 0)
    made = {
        function
        for index in np.flatnonzero(known & (samples.phase == PHASES.index("Data")))
        if (function := _deepest(samples.stacks[samples.stack[index]])) is not None
    }
    evaluating = np.flatnonzero(known & (samples.phase == PHASES.index("Eval")))
    if not len(evaluating) or not whole:
        return None
    making = 0
    for index in evaluating:
        stack = samples.stacks[samples.stack[index]]
        functions = [frame.location.function for frame in stack if frame.location.file.endswith(_LOADER)]
        if any(name.endswith(_FETCHES) for name in functions) and _deepest(stack) in made:
            making += int(samples.weight_ns[index])
    return EvaluationInput(making / whole)


def _deepest(stack: Stack) -> tuple[str, str] | None:
    """File and function of the deepest frame that is no torch's and no Python's."""
    found = next((frame.location for frame in reversed(stack) if frame.kind in ("own", "library")), None)
    return None if found is None else (found.file, found.function)
