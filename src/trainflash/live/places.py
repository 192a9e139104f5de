"""One Python stack → what the thread does and at which line of the owner's.

The frames between the innermost one of the owner's and the leaf say what goes on; library code is collapsed to the owner's frame above it.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass
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
    ("torch/autograd/", (), BACKWARD),
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


@dataclass(frozen=True)
class Place:
    """What a thread does, the owner's frame nearest to it, and the library's function that says so."""

    doing: str
    own: Frame | None
    call: str = ""


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
    for frame in below:
        told = _told(frame)
        if told:
            if told == COLLECTIVE:
                return Place(told, own, _collective(below))
            return Place(_inside_data(stack) or told, own, _short(frame.function))
    return Place(_inside_data(stack) or _by_source(own if not below else None), own)


def is_worker(stack: Stack) -> bool:
    """Whether this is the main thread of a DataLoader worker process."""
    return any(frame.function == "_worker_loop" for frame in stack)


def is_launcher(stack: Stack) -> bool:
    """Whether the thread waits for ranks that it has started."""
    return place(stack).doing == LAUNCHING


def worker_place(stack: Stack) -> Place:
    """As `place`, in a DataLoader worker: waiting for a request is told from making a batch."""
    found = place(stack)
    inner = stack[: next((n for n, frame in enumerate(stack) if frame.function == "_worker_loop"), len(stack))]
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


def _told(frame: Frame) -> str | None:
    for part, functions, doing in _TELLING:
        if part in frame.file and (not functions or _short(frame.function) in functions):
            return doing
    return None


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
