"""What a run is and what it measured: `sandbox.v1`, `run.v1`, `summary.v1`, `runs.v1`.

History: v1, first version.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import ClassVar, Literal

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
class Command:
    """The user's command as typed after `--`, and where: `cwd` is relative to the project; `env` holds our additions only."""

    argv: tuple[str, ...]
    cwd: str = "."
    env: dict[str, str] = field(default_factory=dict)


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
    kind: Literal["diagnose", "fidelity", "bench", "ceiling"]
    command: Command
    side: Side
    protection: Protection
    status: Literal["finished", "stopped", "failed", "interrupted", "timed_out"]  # stopped: by us at a step boundary
    returncode: int | None
    wall_s: float
    started_utc: str
    output_tail: str = ""  # last lines of the program's own output, redacted
    refused_writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spread:
    """Statistics of one quantity in milliseconds; a percentile is None when `n` is too small for it."""

    n: int
    mean_ms: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float


@dataclass(frozen=True)
class PhaseStat:
    """One phase. `share` is of the steady wall time; the per-step figures count a step without the phase as 0."""

    share: float
    mean_ms: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    per_occurrence: Spread | None


@dataclass(frozen=True)
class LineCost:
    """Time-weighted samples of one line of the owner's source (`own` frames nearest to the leaf)."""

    role: Literal["main", "worker"]
    phase: str
    location: Location
    share: float  # of the sampled wall time of that role


@dataclass(frozen=True)
class LoaderFacts:
    """One `DataLoader` as it was constructed, and what it did."""

    id: int
    role: Literal["train", "eval", "unused"]
    location: Location | None  # where the owner constructed it
    num_workers: int
    batch_size: int | None
    persistent_workers: bool
    pin_memory: bool
    prefetch_factor: int | None
    shuffles: bool
    own_generator: bool
    iterable: bool
    dataset: str  # class name
    dataset_location: Location | None  # its `__getitem__` or `__iter__`
    dataset_len: int | None
    sample_bytes: int | None
    epochs: int  # how often it was iterated
    start_ms: Spread | None  # `iter(loader)` until the first batch is asked for; with workers: starting them
    first_batch_ms: Spread | None
    getitem_ms: Spread | None  # per batch, in the process that fetched it
    collate_ms: Spread | None
    fetch_cpu_share: float | None  # CPU time ÷ wall time while fetching: near 1 computes, near 0 waits for input/output
    pass_ms: Spread | None = None  # Data time beyond the usual around each steady pass's begin, until every worker has sent a batch


@dataclass(frozen=True)
class RepeatedWork:
    """A function of the owner's seen called again with equal arguments and equal result."""

    location: Location  # the `def` line
    qualname: str
    role: Literal["main", "worker"]
    calls: int  # seen while tracing, of those that could have repeated an earlier one
    repeats: int  # of these, how many repeated an earlier call
    mean_ms: float
    share: float  # estimated share of the steady wall time
    hashable: bool  # all arguments can be keys of a cache
    is_method: bool
    result_bytes: int | None
    distinct: int  # distinct argument tuples: seen, or one for each sample where the work is done once a sample
    during: Literal["fetch", "collate", "gap"] = "fetch"  # making one sample, joining samples, or between the phases


@dataclass(frozen=True)
class Setting:
    """A debug or performance setting that was on in the run, and where it was switched on (None: environment or library)."""

    name: str  # e.g. "anomaly_mode", "profiler", "gradcheck", "blocking_launches", "deterministic"
    value: str
    location: Location | None


@dataclass(frozen=True)
class Threads:
    """CPU budget of the process and what it asks for."""

    cpus: float | None  # affinity and cgroup quota, the smaller
    torch_threads: int | None
    interop_threads: int | None
    omp_num_threads: str | None
    cpu_seconds: float | None  # process and children, over the steady part
    wall_seconds: float | None
    runqueue_share: float | None  # time threads were runnable without a core ÷ wall
    set_at: Location | None  # the owner's call of torch.set_num_threads


@dataclass(frozen=True)
class Activity:
    """Evaluation, checkpoints or logging as the run did it; `location` is the owner's line that caused most of its time."""

    phase: Literal["Eval", "Ckpt", "Log"]
    count: int
    every_steps: float | None
    mean_ms: float
    location: Location | None
    grad_enabled: bool | None = None  # Eval: were gradients recorded
    batches: float | None = None  # Eval: forward calls per evaluation
    batch_size: int | None = None  # Eval: largest leading dimension seen
    bytes: int | None = None  # Ckpt: per checkpoint


@dataclass(frozen=True)
class Summary:
    """`summary.json`: where one run's time went. Shares are of `steady_s`, the part after start-up and warm-up."""

    SCHEMA: ClassVar[str] = "summary.v1"
    run: str
    project: str
    steps: int  # steady steps
    warmup_steps: int
    epochs: int | None
    wall_s: float
    startup_s: float | None  # process start to the first step
    steady_s: float
    timeline: Literal["host", "device"]
    device: str  # "cpu", "cuda:NVIDIA H200"
    coverage: float  # 1 − Other ÷ steady wall
    phases: dict[str, PhaseStat]
    step_ms: Spread
    ranks: int
    processes: int
    lines: tuple[LineCost, ...] = ()
    loaders: tuple[LoaderFacts, ...] = ()
    repeated: tuple[RepeatedWork, ...] = ()
    settings: tuple[Setting, ...] = ()
    activities: tuple[Activity, ...] = ()
    threads: Threads | None = None
    versions: dict[str, str] = field(default_factory=dict)
    swallowed: dict[str, int] = field(default_factory=dict)  # exceptions that the probe kept from the program, by place
    dropped_events: int = 0
    sampled_s: float | None = None
    padding_share: float | None = None  # share of input elements that are a trailing run of equal values
    input_shapes: int | None = None  # distinct shapes of the first input
    data_function: Location | None = None  # the owner's function whose tensors enter the network, where there is no DataLoader
    stopped: bool = False  # ended by us at a step boundary: `wall_s` is not the program's own
    steady: bool | None = None  # False: step times never settled within the first half; None: too few steps to tell


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


@dataclass(frozen=True)
class Runs:
    """`runs.json`: all starts of one comparison, good and bad, in order."""

    SCHEMA: ClassVar[str] = "runs.v1"
    command: Command
    starts: tuple[Start, ...]
    warmup_steps: int
    unit: str = "step"
    machine: dict[str, str] = field(default_factory=dict)
    stopped_because: str = ""
