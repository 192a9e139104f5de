"""The gate's public classes under their first path. They live in `trainflash.gate`, found in this checkout where it is not installed."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

_NAMES = (
    "BenchConfig", "BenchResult", "BenchRunner", "BenchTrain", "CollectEnv", "CompareBaseline", "CompareResult", "EvalConfig", "EvalResult",
    "EvalSmall", "ToleranceConfig",
)  # fmt: skip
__all__ = list(_NAMES)

if importlib.util.find_spec("trainflash") is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trainflash import gate

    return getattr(gate, name)
