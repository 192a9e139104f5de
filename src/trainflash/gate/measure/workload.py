"""One training step as the benchmark drives it: model, batches, optimizer. A *workload* is named by the function that builds it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from trainflash.errors import UsageError


@dataclass
class Workload:
    """What one process trains. Built anew for each repeat and on each rank, after the process group stands.

    `batches` is an iterable, or a function that gives one; it is begun again when it ends. `forward(model, batch)` gives the outputs (left
    out: the model is called with the batch), `loss(outputs, batch)` the loss (left out: the outputs are it, or have it as `loss`).
    `accumulate` batches make one step. `step(batch)` does the whole step by itself and gives the loss; then no region but data is told
    apart. `tokens(batch)` and `samples(batch)` count one batch; left out, they are counted by shape.
    """

    model: Any
    optimizer: Any
    batches: Iterable[Any] | Callable[[], Iterable[Any]]
    forward: Callable[[Any, Any], Any] | None = None
    loss: Callable[[Any, Any], Any] | None = None
    accumulate: int = 1
    step: Callable[[Any], Any] | None = None
    tokens: Callable[[Any], int] | None = None
    samples: Callable[[Any], int] | None = None


Factory = Callable[[], Workload]


def name_of(factory: Factory) -> str | None:
    """`FILE:FUNCTION` by which another process finds `factory`; None for one that only this process has."""
    name = getattr(factory, "__qualname__", "")
    try:
        file = inspect.getsourcefile(factory)
    except TypeError:
        return None
    return f"{Path(file).resolve()}:{name}" if file and name.isidentifier() else None


def shown(factory: str | Factory) -> str:
    """The function's name as it stands in documents: without folders, so that it is the same in every checkout."""
    spec = factory if isinstance(factory, str) else name_of(factory) or getattr(factory, "__qualname__", type(factory).__name__)
    place, _, name = spec.rpartition(":")
    return f"{Path(place).name}:{name}" if place else name


def load(spec: str) -> Factory:
    """The function that `MODULE:FUNCTION` or `FILE.py:FUNCTION` names. Raises `UsageError` where there is none."""
    place, _, name = spec.rpartition(":")
    if not place or not name.isidentifier():
        raise UsageError(f"{spec!r} names no function", "write MODULE:FUNCTION or FILE.py:FUNCTION")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _imported(place)
    except Exception as failed:
        raise UsageError(f"{place} cannot be imported: {type(failed).__name__}: {failed}", "make it importable from here first") from failed
    found = getattr(module, name, None)
    if not callable(found):
        raise UsageError(f"{place} has no function {name}", "name a function without arguments that builds it")
    return found


def built(factory: Factory) -> Workload:
    """What `factory` builds. Raises `UsageError` for something else."""
    made = factory()
    if not isinstance(made, Workload):
        raise UsageError(f"the workload's function gave {type(made).__name__}, not Workload", "return trainflash.gate.Workload(model=…)")
    if made.accumulate < 1:
        raise UsageError(f"accumulate is {made.accumulate}", "one batch a step, or more")
    return made


def tensors_of(batch: Any, depth: int = 3) -> list[tuple[str, Any]]:
    """(name, tensor) of a batch; the name is "" where it has none."""
    if hasattr(batch, "shape") and hasattr(batch, "dtype"):
        return [("", batch)]
    if depth == 0:
        return []
    if isinstance(batch, Mapping) or hasattr(batch, "keys"):
        return [(str(key), tensor) for key in batch.keys() for _, tensor in tensors_of(batch[key], depth - 1)]  # noqa: SIM118
    if isinstance(batch, (tuple, list)):
        return [pair for item in batch for pair in tensors_of(item, depth - 1)]
    return []


_IDS = ("input_ids", "tokens", "ids", "src", "inputs", "x", "")


def tokens_in(batch: Any) -> int | None:
    """Elements of the batch's token ids: its first two-dimensional whole-number tensor, by name where it has one; None without."""
    found = [(name, tensor) for name, tensor in tensors_of(batch) if len(tensor.shape) == 2 and "int" in str(tensor.dtype)]
    for wanted in _IDS:
        for name, tensor in found:
            if name == wanted:
                return int(tensor.shape[0] * tensor.shape[1])
    return None


def samples_in(batch: Any) -> int | None:
    """The leading dimension of the batch's first tensor; None without one."""
    return next((int(tensor.shape[0]) for _, tensor in tensors_of(batch) if len(tensor.shape)), None)


def _from_file(path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise FileNotFoundError(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # as `python FILE.py` would
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _imported(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)
