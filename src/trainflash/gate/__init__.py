"""The performance gate: environment, benchmark, evaluation, baselines by machine profile, comparison.

Nothing here loads torch; a benchmark or an evaluation of a step function does so when it runs.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "BenchConfig": "config",
    "BenchResult": "measure.bench",
    "BenchRunner": "runner",
    "BenchTrain": "measure.bench",
    "CollectEnv": "machines.environment",
    "CompareBaseline": "comparison",
    "CompareResult": "comparison",
    "EvalConfig": "config",
    "EvalResult": "evaluate.evaluation",
    "EvalSmall": "evaluate.evaluation",
    "ToleranceConfig": "tolerances",
    "Workload": "measure.workload",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """The public names, each from its own module when it is first asked for, so that `env` alone loads no statistics."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
