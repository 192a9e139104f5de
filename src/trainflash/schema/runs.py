"""What a run is, and what a comparison of runs measured: `sandbox.v1`, `run.v1`, `runs.v1`.

History: v1, first version.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from trainflash.errors import UsageError

PHASES = ("Data", "H2D", "Fwd", "Bwd", "Opt", "Eval", "Ckpt", "Log", "Other")
Protection = Literal["mount", "landlock", "manifest", "in_place"]
Side = Literal["baseline", "candidate"]


@dataclass(frozen=True)
class Location:
    """A place in the owner's source: `file` relative to the project where it lies inside, else absolute; `line` from 1."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class WordChange:
    """One word of a command that an experiment changes: replaced, left out (`after` None), or put behind the last one (`before` None)."""

    at: int  # its place in `Command.argv`, as the accepted experiments beneath left it
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Command:
    """The user's command as typed after `--`, and where: `cwd` is relative to the project; `env` holds our additions only."""

    argv: tuple[str, ...]
    cwd: str = "."
    env: dict[str, str] = field(default_factory=dict)

    def with_words(self, changes: Sequence[WordChange]) -> Command:
        """The command with these words changed, one after the other. Raises `UsageError` where it has other words in their places."""
        words = list(self.argv)
        for change in changes:
            if change.before is None:
                words.append(change.after or "")
            elif words[change.at : change.at + 1] != [change.before]:
                raise UsageError(f"the command has no {change.before!r} as its word {change.at + 1}", "use the command it was made with")
            else:
                words[change.at : change.at + 1] = [] if change.after is None else [change.after]
        return replace(self, argv=tuple(words))


@dataclass(frozen=True)
class Sandbox:
    """`sandbox.json`: one sandbox of one project. All paths are absolute."""

    SCHEMA: ClassVar[str] = "sandbox.v1"
    project: str
    repository: str  # root of the repository that holds the project; the project itself when there is no git
    directory: str
    baseline: str  # checkout of the owner's state as it was at `create`, never edited
    worktree: str  # checkout that experiments change
    base_ref: str  # commit of the owner's state in the sandbox's own history
    head: str | None  # the owner's HEAD; None: unborn or no git
    created_utc: str
    protection: Protection
    protection_reason: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """The project relative to the repository's root; "" where they are the same."""
        inside = os.path.relpath(self.project, self.repository)
        return "" if inside == "." else inside

    def checkout(self, side: Side) -> str:
        """The checkout of `side`: the counterpart of the repository's root."""
        return self.baseline if side == "baseline" else self.worktree


@dataclass(frozen=True)
class RunRecord:
    """`run.json`: one start of the user's program, written when it ends (`status` says how)."""

    SCHEMA: ClassVar[str] = "run.v1"
    id: str
    kind: Literal["diagnose", "fidelity", "bench", "ceiling", "profile", "author"]
    command: Command
    side: Side
    protection: Protection
    status: Literal["finished", "stopped", "failed", "interrupted", "timed_out"]  # stopped: by us at a step boundary
    returncode: int | None
    wall_s: float
    started_utc: str
    output_tail: str = ""  # last lines of the program's own output, redacted
    refused_writes: tuple[str, ...] = ()
    outputs: dict[str, int] = field(default_factory=dict)  # the largest files that it made or changed → bytes on disk; gone with its layer
    outputs_files: int = 0
    outputs_bytes: int = 0
    connections: tuple[str, ...] = ()  # ADDRESS:PORT outside this machine that the program was seen to be connected to


@dataclass(frozen=True)
class Start:
    """One start: a fresh baseline and a fresh candidate process measured as a pair. `y` = log(baseline time ÷ candidate time)."""

    n: int
    schedule: Literal["resident", "sequential"]
    y: float | None  # None: this start does not count, `reason` says why
    y_wall: float | None
    clock: Literal["net", "wall"]
    reason: str = ""
    steps: int = 0  # per side
    slices: int = 0
    baseline_step_ms: float | None = None
    candidate_step_ms: float | None = None
    baseline_p95_ms: float | None = None
    candidate_p95_ms: float | None = None
    baseline_p99_ms: float | None = None
    candidate_p99_ms: float | None = None
    baseline_cpu_s: float | None = None
    candidate_cpu_s: float | None = None
    baseline_startup_s: float | None = None
    candidate_startup_s: float | None = None
    baseline_lead_s: float | None = None  # from process start to the first timed step: start-up, and the first epoch where it is passed
    candidate_lead_s: float | None = None
    runqueue_share: float | None = None
    spent_s: float = 0.0
    baseline_peak_mb: float | None = None  # host memory at most, all processes, shared pages once
    candidate_peak_mb: float | None = None
    baseline_device_peak_mb: float | None = None
    candidate_device_peak_mb: float | None = None
    pinned: bool = False  # each busy process had a core of its own
    scatter: float | None = None  # standard error of `y` by its slices: this start's noise is not less
    # What a start saw of the run beyond its early steps: windows up to `last_step`, with `passed` steps untimed between them.
    last_step: int | None = None  # None: the early steps only
    passed: int = 0
    y_run: float | None = None  # `y` of all steps up to the last one seen, those that were passed as the windows beside them
    y_run_wall: float | None = None
    scatter_run: float | None = None
    run_steps: int | None = None  # how many steps the run has, where its end was seen; then also its seconds, from process start to end
    baseline_run_s: float | None = None
    candidate_run_s: float | None = None
    far_s: float = 0.0  # of `spent_s`, for what came after the early steps


@dataclass(frozen=True)
class Runs:
    """`runs.json`: all starts of one comparison, good and bad, in order."""

    SCHEMA: ClassVar[str] = "runs.v1"
    command: Command
    starts: tuple[Start, ...]
    warmup_steps: int
    unit: str = "step"
    machine: dict[str, str] = field(default_factory=dict)  # what the starts have in common, and how busy the machine was
    stopped_because: str = ""
    kept_from_before: int = 0  # of the starts, measured when this comparison was asked for earlier
