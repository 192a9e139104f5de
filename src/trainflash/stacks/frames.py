"""Call stacks: whose code each frame is, and which of its frames a stack's time counts for."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from trainflash.schema import Location

OF_LOOP = ("Data", "Fwd", "Bwd", "Opt")
METRICS = ("torchmetrics/", "torcheval/", "ignite/metrics/", "monai/metrics/", "sklearn/metrics/", "evaluate/", "seqeval/", "sacrebleu/")
LOOP_SHARE = 0.01  # own: of the time in each of two such phases, before a line stands for a loop
MOST_OF_PHASE = 0.5  # own: of all time in a phase
WHOLE_NETWORK = 0.4  # own: of the time at one line that calls a library's network, before that line says too little
ALIKE = 0.2  # own: of a line's time in either of two phases, where it runs no update; a transform may be a module with a forward of its own
_ARITHMETIC = """
numpy scipy sklearn pandas polars statsmodels networkx numba joblib PIL cv2 skimage imageio matplotlib tqdm rich librosa soundfile
pyarrow h5py msgpack yaml requests urllib3 tensorboard wandb
"""
LEAVES = frozenset(_ARITHMETIC.split())  # libraries that a line calls for arrays, tables, texts, pictures: never the place to look at
_INSTALLED = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_PYTHON = re.compile(r"^.*[/\\]lib(?:64)?[/\\]python\d+\.\d+[/\\]")


@dataclass(frozen=True)
class StackFrame:
    """One frame: its line, and whose code it is."""

    location: Location  # of a library: the file below the folder of installed packages
    kind: str  # own, torch, library, python (its own library, and generated code)
    text: str = ""  # of a line of torch's that calls modules and hooks

    @property
    def package(self) -> str:
        """The library's name as it is imported, "" for the owner's and Python's own."""
        return self.location.file.replace("\\", "/").partition("/")[0].removesuffix(".py") if self.kind in ("library", "torch") else ""


Stack = tuple[StackFrame, ...]  # from the outermost frame to the leaf


def frame_at(location: Location, own: bool, text: str = "") -> StackFrame:
    """The frame at a place, by the file that it lies in."""
    file = location.file
    if own:
        return StackFrame(location, "own")
    installed = _INSTALLED.match(file)
    if installed:
        file = file[installed.end() :]
        return StackFrame(Location(file, location.line, location.function), "torch" if file.startswith("torch/") else "library", text)
    of_python = _PYTHON.match(file)
    if of_python or file.startswith("<") or not file.endswith(".py"):
        return StackFrame(Location(file[of_python.end() :] if of_python else file, location.line, location.function), "python")
    return StackFrame(location, "library")


def owners(stack: Stack) -> int | None:
    """Place of the owner's deepest frame in a stack; None where there is none."""
    return next((place for place in reversed(range(len(stack))) if stack[place].kind == "own"), None)


def loop_lines(weighed: Iterable[tuple[Stack, str, float]]) -> frozenset[Location]:
    """The owner's lines that stand for a loop inside a library: parts of steps of several kinds run below them. (stack, phase, time)."""
    spent: dict[Location, Counter] = defaultdict(Counter)
    whole: Counter = Counter()
    for stack, phase, time in weighed:
        whole[phase] += time  # type: ignore[assignment]
        own = owners(stack)
        if own is not None and phase in OF_LOOP and any(_of_trainer(frame) for frame in stack[own + 1 :]):
            spent[stack[own].location][phase] += time  # type: ignore[assignment]
    return frozenset(line for line, phases in spent.items() if _of_loop(phases, whole))


def _of_loop(phases: Counter, whole: Counter) -> bool:
    """Whether parts of steps of several kinds lie below one line: an update with what it is made of, or batches and forwards alike.

    A part is more than stray samples, or most of what there is of its kind: another cost may leave little for updates and forwards.
    """
    least = LOOP_SHARE * sum(whole.values())
    there = {name for name in OF_LOOP if phases[name] >= min(least, MOST_OF_PHASE * whole[name]) > 0}
    making, forward = phases["Data"], phases["Fwd"]
    updates = "Opt" in there and bool(there & {"Data", "Fwd"})
    return updates or min(making, forward) >= max(least, ALIKE * sum(phases.values()))


def network_lines(weighed: Iterable[tuple[Stack, str, float]]) -> frozenset[Location]:
    """The owner's lines that call a whole network of a library, where that is most of the time: its own lines tell more."""
    spent: Counter = Counter()
    whole = 0.0
    for stack, phase, time in weighed:
        whole += time
        own = owners(stack) if phase in ("Fwd", "Bwd") else None
        if own is not None and any(_of_network(caller, called) for caller, called in pairwise(stack[own:])):
            spent[stack[own].location] += time  # type: ignore[assignment]
    return frozenset(line for line, time in spent.items() if time >= WHOLE_NETWORK * whole)


def calls_module(frame: StackFrame) -> bool:
    """Whether a frame is torch's own, in which a module is called."""
    return frame.kind == "torch" and frame.location.file.endswith("torch/nn/modules/module.py")


def _of_network(caller: StackFrame, called: StackFrame) -> bool:
    forward = called.location.function.endswith(".forward") and not called.location.file.startswith(METRICS)
    return calls_module(caller) and _of_trainer(called) and forward


def anchored(stack: Stack, loops: frozenset[Location]) -> tuple[int | None, Location | None]:
    """(place in the stack of the frame that its time counts for, the owner's line of the loop above it where that frame is a library's).

    That is the owner's deepest frame; where there is none, or it stands for a loop, the deepest one of a library that trains.
    """
    own = owners(stack)
    if own is not None and stack[own].location not in loops:
        return own, None
    behind = -1 if own is None else own
    found = next((place for place in reversed(range(behind + 1, len(stack))) if _of_trainer(stack[place])), None)
    return (own, None) if found is None else (found, None if own is None else stack[own].location)


def anchor(stack: Stack, loops: frozenset[Location]) -> Location | None:
    """Where the time of a stack counts; None where none of its frames is the owner's or a library's."""
    place, _ = anchored(stack, loops)
    return None if place is None else stack[place].location


def _of_trainer(frame: StackFrame) -> bool:
    return frame.kind == "library" and frame.package not in LEAVES
