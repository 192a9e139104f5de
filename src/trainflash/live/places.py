"""One Python stack → what the thread does and at which line of the owner's.

The frames between the innermost one of the owner's and the leaf say what goes on; library code is collapsed to the owner's frame above it.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from trainflash.live.stacks import Frame, Stack
from trainflash.schema import Location

# What a thread does. The words stand in answers.
DATA = "data"  # making a batch, in this process
WAITS_FOR_DATA = "waiting for data"
NO_REQUEST = "waiting for a request"  # a DataLoader worker that has nothing to do
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
COLLECTIVE = "collective"
CHECKPOINT, LOGGING = "checkpoint", "logging"
DEVICE = "waiting for the device"
LOCK, DEBUGGER, INPUT = "lock", "debugger", "input"
LAUNCHING = "waiting for ranks"
STARTING = "starting and stopping workers"
PYTHON = "python"  # the owner's own code, or a library's on its behalf

COMPUTING = (FORWARD, BACKWARD, OPTIMIZER)
_LIBRARY = re.compile(r"(^|/)(site-packages|dist-packages)/|/lib/python3[^/]*/|/python3\d*\.zip/|/trainflash_probe/|^<(?!ipython|stdin)")
_LIBRARY_OF_PYTHON = re.compile(r"/lib/python3[^/]*/(?!site-packages|dist-packages)|^<")
_DEVICE_CALL = re.compile(r"\.(item|cpu|tolist|numpy|synchronize)\(|\bfloat\(|\bint\(")
_LOCK_CALL = re.compile(r"\.(acquire|join|wait|result)\(|^\s*with\b.*lock", re.IGNORECASE)
_INPUT_CALL = re.compile(r"\binput\(|sys\.stdin|\bbreakpoint\(")
# Innermost match wins. (part of the file's path, functions; empty: any function, what it is)
_TELLING: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("/bdb.py", (), DEBUGGER),
    ("/pdb.py", (), DEBUGGER),
    ("/cmd.py", (), DEBUGGER),
    ("torch/distributed/elastic/", (), LAUNCHING),
    ("torch/distributed/run.py", (), LAUNCHING),
    ("torch/multiprocessing/spawn.py", ("join",), LAUNCHING),
    ("multiprocessing/process.py", ("join",), LAUNCHING),
    ("accelerate/commands/", (), LAUNCHING),
    ("torch/distributed/", (), COLLECTIVE),
    ("torch/utils/data/dataloader.py", ("_try_get_data", "_get_data"), WAITS_FOR_DATA),
    ("torch/utils/data/_utils/fetch.py", (), DATA),
    ("torch/utils/data/_utils/collate.py", (), DATA),
    ("torch/utils/data/dataloader.py", (), DATA),
    ("torch/autograd/graph.py", (), BACKWARD),
    ("torch/autograd/__init__.py", (), BACKWARD),
    ("torch/_tensor.py", ("backward",), BACKWARD),
    ("torch/optim/", (), OPTIMIZER),
    ("torch/serialization.py", (), CHECKPOINT),
    ("safetensors/", (), CHECKPOINT),
    ("torch/nn/", (), FORWARD),
    ("torch/cuda/__init__.py", ("synchronize",), DEVICE),
    ("/logging/", (), LOGGING),
    ("torch/utils/tensorboard/", (), LOGGING),
    ("wandb/", (), LOGGING),
    ("/threading.py", ("wait", "join", "_wait_for_tstate_lock", "acquire"), LOCK),
    ("multiprocessing/synchronize.py", (), LOCK),
)


PHASES = {
    DATA: "Data", WAITS_FOR_DATA: "Data", STARTING: "Data", FORWARD: "Fwd", BACKWARD: "Bwd", OPTIMIZER: "Opt", CHECKPOINT: "Ckpt",
    LOGGING: "Log",
}  # fmt: skip
_ENGINE = (
    ("torch/autograd/graph.py", "_engine_run_backward"),
    ("torch/autograd/__init__.py", "backward"),
    ("torch/autograd/__init__.py", "grad"),
)
_MODULE = "torch/nn/modules/module.py"
_LOADER = "torch/utils/data/dataloader.py"
_DECORATOR = "torch/utils/_contextlib.py"


@dataclass(frozen=True)
class Place:
    """What a thread does, the owner's frame nearest to it, and the library's function that says so."""

    doing: str
    own: Frame | None
    call: str = ""


@lru_cache(maxsize=16384)
def is_own(frame: Frame) -> bool:
    """Whether the frame is the owner's: not the standard library's, not an installed package's."""
    return bool(frame.file) and not _LIBRARY.search(frame.file)


def place(stack: Stack) -> Place:
    """What the thread with this stack does."""
    below = []
    own = None
    for frame in stack:
        if is_own(frame):
            own = frame
            break
        below.append(frame)
    if any(_starts_workers(frame) for frame in below):
        return Place(STARTING, own)
    closure = False
    for n, frame in enumerate(below):
        told = _told(frame)
        closure = closure or (told == OPTIMIZER and _calls_closure(below[:n]))
        if told and not (closure and told == OPTIMIZER):
            if told == COLLECTIVE:
                return Place(told, own, _collective(below))
            return Place(_inside_data(stack) or told, own, _short(frame.function))
    doing = _inside_data(stack) or _by_source(own if not below else None)
    return Place(BACKWARD if doing == PYTHON and _around(stack) == BACKWARD else doing, own)


def phase(stack: Stack, told: Place) -> str:
    """The phase of a step that a stack belongs to; `told` is its place. Where that is Python alone, what it runs in says it."""
    around = _around(stack)
    return "Bwd" if around == BACKWARD else PHASES.get(told.doing) or PHASES.get(around or "", "Other")


def in_update(stack: Stack) -> bool:
    """Whether autograd's engine or an optimizer's step is on the stack."""
    return any(_is_engine(frame) or _told(frame) == OPTIMIZER for frame in stack)


def in_loop(stack: Stack) -> bool:
    """Whether a part of a training step is on the stack: data, forward, backward or step."""
    return in_update(stack) or any(frame.file.endswith((_MODULE, _LOADER)) for frame in stack)


def of_worker(stack: Stack) -> Stack:
    """The part of a stack that a DataLoader worker runs: a forked one has its parent's frames too."""
    return stack[: next((n for n, frame in enumerate(stack) if frame.function == "_worker_loop"), len(stack))]


def is_worker(stack: Stack) -> bool:
    """Whether this is the main thread of a DataLoader worker process."""
    return any(frame.function == "_worker_loop" for frame in stack)


def is_launcher(stack: Stack) -> bool:
    """Whether the thread waits for ranks that it has started."""
    return place(stack).doing == LAUNCHING


def worker_place(stack: Stack) -> Place:
    """As `place`, in a DataLoader worker: waiting for a request is told from making a batch."""
    found = place(stack)
    inner = of_worker(stack)
    if any(is_own(frame) or "_utils/fetch.py" in frame.file or "_utils/collate.py" in frame.file for frame in inner):
        own = next((frame for frame in inner if is_own(frame)), None)
        return Place(DATA, own, found.call)
    waits = any(_short(frame.function) in ("get", "poll") for frame in inner)
    return Place(NO_REQUEST if waits else DATA, None, found.call)


def location(frame: Frame, cwd: str | None) -> Location:
    """The frame as a place in the owner's source, relative to the process's working directory where it lies inside."""
    path = PurePath(frame.file)
    if cwd is not None and path.is_relative_to(cwd):
        path = path.relative_to(cwd)
    return Location(str(path), frame.line, _short(frame.function))


@lru_cache(maxsize=16384)
def _told(frame: Frame) -> str | None:
    for part, functions, doing in _TELLING:
        if part in frame.file and (not functions or _short(frame.function) in functions):
            return doing
    return None


def _around(stack: Stack) -> str | None:
    """The innermost part of a step that the stack lies in, at any depth; backward where that is one of them."""
    if any(_is_engine(frame) for frame in stack):
        return BACKWARD
    for n, frame in enumerate(stack):
        if frame.file.endswith(_MODULE):
            return FORWARD
        if frame.file.endswith(_LOADER):
            return DATA
        if "torch/optim/" in frame.file:
            return None if _calls_closure(stack[:n]) else OPTIMIZER
    return None


def _is_engine(frame: Frame) -> bool:
    return any(frame.file.endswith(file) and _short(frame.function) == function for file, function in _ENGINE)


def _calls_closure(inner: Stack | list[Frame]) -> bool:
    """Whether a function of torch.optim calls what is no part of the update, such as a closure with a whole step in it."""
    called = next((frame for frame in reversed(inner) if not frame.file.endswith(_DECORATOR)), None)
    return (
        called is not None
        and "torch/" not in called.file
        and not _LIBRARY_OF_PYTHON.search(called.file)
        and _short(called.function) != "step"
    )


def _starts_workers(frame: Frame) -> bool:
    iterates = frame.file.endswith("torch/utils/data/dataloader.py")
    return iterates and _short(frame.function) in ("__init__", "_shutdown_workers", "_get_iterator")


def _collective(below: list[Frame]) -> str:
    """The outermost function of torch.distributed that the owner called, such as `barrier`."""
    named = [frame for frame in below if "torch/distributed/" in frame.file and not frame.function.endswith("wrapper")]
    return _short(named[-1].function) if named else ""


def _inside_data(stack: Stack) -> str | None:
    """Data when a dataset or collate function is being called in this process."""
    fetching = any("torch/utils/data/_utils/" in frame.file for frame in stack)
    return DATA if fetching and not is_worker(stack) else None


def _by_source(own: Frame | None) -> str:
    """What a leaf in the owner's code does, from the source line where it can be read; builtins leave no frame."""
    if own is None:
        return PYTHON
    text = linecache.getline(own.file, own.line)
    for pattern, doing in ((_INPUT_CALL, INPUT), (_LOCK_CALL, LOCK), (_DEVICE_CALL, DEVICE)):
        if pattern.search(text):
            return doing
    return PYTHON


def _short(function: str) -> str:
    """The bare name: older Pythons give no qualified one."""
    return next((part for part in reversed(function.split(".")) if not part.startswith("<")), function)
