"""What a running program, not started by us, was seen to do: `live.v1`. `None` means not measured.

History: v1, first version; `Live.sites` and `LiveProcess.beside` came later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainflash.schema.findings import Finding
from trainflash.schema.machinery import Telemetry
from trainflash.schema.runs import Location
from trainflash.schema.sites import Site

Role = Literal["training", "worker", "launcher", "helper"]


@dataclass(frozen=True)
class LiveLine:
    """One place of the owner's source in the thread of a process that trains."""

    location: Location
    share: float  # of the samples of that thread
    doing: str  # what went on below it: "data", "waiting for data", "forward", "backward", …


@dataclass(frozen=True)
class LiveThread:
    """One thread over the window."""

    tid: int
    name: str
    cpu: float  # cores
    waited: float | None  # share of the window in which it was ready to run and had no core


@dataclass(frozen=True)
class LiveProcess:
    """One Python process of the program over the window. "Its thread" is the main one, unless another one trains (`beside`)."""

    pid: int
    parent: int
    role: Role
    rank: int | None
    command: str
    cpu: float  # cores, all threads
    threads: int
    busiest: tuple[LiveThread, ...]  # at most five, busiest first
    samples: int  # stacks of its thread; 0: none could be taken
    still: bool | None  # its thread neither moved nor computed
    doing: dict[str, float]  # what its thread did, as shares of the samples
    lines: tuple[LiveLine, ...]  # costliest first
    waits_for: str | None  # what the kernel says that its thread waited for at the end
    read_mb_s: float | None  # by read calls, page cache included
    beside: int | None = None  # number of the thread that trains beside the main one; None: the main one is looked at


@dataclass(frozen=True)
class Lack:
    """Something that could not be measured, why, and what would make it possible."""

    what: str
    why: str
    mend: str


@dataclass(frozen=True)
class Live:
    """The answer of `diagnose --pid`. The first finding is the bottleneck; `abstained` says why there is none to trust."""

    SCHEMA: ClassVar[str] = "live.v1"
    pid: int
    taken: tuple[int, ...]  # the training processes among `processes`
    seconds: float
    processes: tuple[LiveProcess, ...]
    findings: tuple[Finding, ...]
    abstained: str | None
    lacks: tuple[Lack, ...] = ()
    notes: tuple[str, ...] = ()
    telemetry: Telemetry | None = None
    sites: tuple[Site, ...] = ()  # the five largest of the lowest rank and its workers; shares are of samples
