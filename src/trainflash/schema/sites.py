"""Cost sites: places in source with what they cost. Part of `summary.v1` and `findings.v1`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainflash.schema.runs import Location

Often = Literal["step", "pass", "now and then"]


@dataclass(frozen=True)
class Operand:
    """A tensor that a call was given or made."""

    shape: tuple[int, ...]
    dtype: str
    layout: str = "contiguous"  # contiguous, channels_last, expanded, strided, or torch's name of a sparse layout
    requires_grad: bool = False
    device: str = "cpu"
    values: str = ""  # what a sample of a large tensor mostly holds: zeros, ones; or subnormal numbers in a tenth of it


@dataclass(frozen=True)
class SiteOperator:
    """Calls of one function of torch by one line, in the recorded steps. Shares are of the steady step."""

    name: str  # as torch names it: "norm", "linear"
    calls: float  # in a step
    ms: float  # of a step: the calls themselves
    backward_ms: float  # and their backward
    share: float  # both
    given: tuple[Operand, ...] = ()  # of its longest kind of call; empty where all were short
    made: tuple[Operand, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()  # plain ones, by name or place
    floor_ms: float | None = None  # what this machine needs at least for them, both ways; None: not known
    alone_ms: float | None = None  # of a step, as they were tried by themselves after the run, both ways; None: not tried
    channels_last_saves: float | None = None  # part of their time, as tried on this machine; negative: it costs; None: not tried


@dataclass(frozen=True)
class Site:
    """One place, and what it costs. `share` is of the steady wall time of the training thread (`role` worker: of the workers' time)."""

    role: Literal["main", "worker"]
    phase: str  # where most of its time lies; Fwd stands for a forward with its own backward
    location: Location  # the owner's deepest line; of a loop that runs in a library, the library's line
    share: float
    run_share: float  # of the whole run's wall time, start-up and all
    function_share: float  # of all lines of the location's function, in the same phase
    forward: float = 0.0  # of `share`
    backward: float = 0.0  # of `share`: the backward of what the line computed
    beside: float = 0.0  # of `forward`: outside of modules, as a loss or the choice of pairs for it
    under: Location | None = None  # the owner's line that runs the loop, where `location` is a library's
    path: tuple[Location, ...] = ()  # below `location`, down to the hottest library function
    callers: tuple[Location, ...] = ()  # the owner's lines in other functions that led to most of it, nearest first
    called_back: str = (
        ""  # what it is inside forward, backward or step: "hook", "metric", "tracker", "engine" (what autograd calls beside nodes)
    )
    often: Often = "step"
    operators: tuple[SiteOperator, ...] = ()  # costliest first
    early_ms: float | None = None  # of a step, in the first third of the steady steps
    late_ms: float | None = None  # in the last third


@dataclass(frozen=True)
class Trend:
    """How step time changed over the steady steps. Milliseconds a step, in the means of the first and the last third of them."""

    steps: int
    early_ms: float
    late_ms: float
    parts_ms: tuple[float, ...]  # medians of the step in six equal parts of the steady steps, in order
    cpu_early_ms: float | None  # CPU time of the training thread; None where it was not read often enough
    cpu_late_ms: float | None
    phase: str  # that changed most
    location: Location | None  # the site that changed most; None: no stacks
    site_early_ms: float | None = None
    site_late_ms: float | None = None
    in_hooks: bool = False  # the time is the engine's beside the nodes of the graph, as in hooks


@dataclass(frozen=True)
class CallNode:
    """A node of the call tree: a line, the share of the wall time below it, and what it called."""

    location: Location
    kind: Literal["own", "library", "torch", "python", "phase"]
    share: float
    children: tuple[CallNode, ...] = ()


@dataclass(frozen=True)
class CallTree:
    """`call_tree.json`: the training thread's steady part, a root for each phase; Fwd holds forwards with their backwards."""

    SCHEMA: ClassVar[str] = "call_tree.v1"
    run: str
    roots: tuple[CallNode, ...]


@dataclass(frozen=True)
class Peaks:
    """What this machine does at most with so many threads of torch: bytes and floating-point operations a second, by memory and type."""

    threads: int
    bytes_per_s: dict[str, float]  # cache, memory
    flops_per_s: dict[str, float]  # float32, float64, bfloat16


@dataclass(frozen=True)
class MachinePeaks:
    """`peaks.json`: of one machine, the best that was ever measured."""

    SCHEMA: ClassVar[str] = "peaks.v1"
    machine: str  # its processor
    measured: tuple[Peaks, ...] = ()
