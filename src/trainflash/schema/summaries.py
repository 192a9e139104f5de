"""What one run was seen to do: `summary.v1`. `None` means not measured.

History: v1, first version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from trainflash.schema.computing import (
    Attention,
    Collections,
    Compilation,
    ForwardRepeat,
    FrozenRepeat,
    IgnoredTargets,
    InVain,
    Memory,
    Numerics,
    Operators,
    Parts,
    Recompute,
    Started,
    SyncPoint,
    UndoneLayout,
    Updates,
)
from trainflash.schema.machinery import (
    Communication,
    DeviceTime,
    RankStat,
    RankWhatIf,
    Telemetry,
)
from trainflash.schema.runs import Location
from trainflash.schema.sites import Site, Trend


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
    device_ms: float | None = None  # device work of the phase per step, by events; None: host timeline only


@dataclass(frozen=True)
class LineCost:
    """Time-weighted samples of one line of the owner's source (`own` frames nearest to the leaf)."""

    role: Literal["main", "worker"]
    phase: str
    location: Location
    share: float  # of the sampled wall time of that role
    part: Literal["", "getitem", "collate", "waiting", "in_step"] = ""  # of making a batch; waiting: for a request; in_step: in the step
    in_library: float = 0.0  # of `share`: in a library that the line calls, and that knows nothing of tensors, such as scikit-learn


@dataclass(frozen=True)
class SlowSample:
    """A sample that took far longer to make than usual ones of the same loader."""

    index: int
    file: str | None  # where the dataset names one
    ms: float
    usual_ms: float  # median over the samples timed
    times: int = 1  # how often it was seen


@dataclass(frozen=True)
class InputTail:
    """Waiting for batches in ordinary steps only: no first step of a pass, no evaluation, no checkpoint in them."""

    wait_ms: Spread
    late: int  # steps that waited more than twice the mean step without Data
    late_share: float  # their waiting above the median, of the steady wall time


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
    own_generator: bool  # the order comes from one that nothing else draws from
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
    runqueue_share: float | None = None  # time runnable without a core ÷ wall time while fetching
    slow_samples: tuple[SlowSample, ...] = ()  # slowest first
    draws: bool | None = None  # making a batch draws random numbers, from a global stream or a generator of the data set's
    batched: bool = False  # the dataset has `__getitems__`, or a batch sampler hands it whole batches
    starts: int | None = None  # times that its workers were started; None: none was seen
    collate_location: Location | None = None  # the owner's function that joins samples into a batch; None: a library's
    collator_made_at: Location | None = None  # where the owner made a library's object that joins them
    classes: tuple[tuple[str, str], ...] | None = None  # file and name of the owner's classes that it is made of; None: not all known
    joined_at: Location | None = None  # the owner's function that most of joining passed in, itself or one that it calls
    wait_s: float | None = None  # the training process waited for its batches, over the whole run
    made_of_waited: float | None = None  # workers' time to make a batch ÷ training's wait for one; None: no workers, or not measured
    pass_ms: Spread | None = None  # Data time beyond the usual around each steady pass's begin, until every worker has sent a batch


@dataclass(frozen=True)
class EvaluationInput:
    """Of the steady wall time, inside evaluations: batches made by functions that make training's, or waited for as those are."""

    making: float


@dataclass(frozen=True)
class WorkerMemory:
    """Memory that data workers no longer share with their parent, and what copying it costs them; in the mean of the workers."""

    workers: int
    first_bytes: float  # private, when they were asked first
    last_bytes: float  # and last
    faults_per_batch: float
    system_share: float  # of their time in the kernel, where pages are copied


@dataclass(frozen=True)
class RepeatedWork:
    """A function of the owner's, or torch's operators in it, seen called again with equal arguments and equal result."""

    location: Location  # the `def` line; of operators the costliest line
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
    during: Literal["fetch", "collate", "gap", "forward", "operators"] = "fetch"
    # making one sample, joining them, between phases, until backward; calls of torch by the function at `location`, its costliest line
    containers: bool = False  # arguments that cannot be keys are arrays, or dictionaries and lists of a few that can


SETTINGS = (
    *("anomaly_mode", "gradcheck", "underflow_overflow", "profiler", "python_profiler", "python_tracing", "tracemalloc"),
    *("looking_mode", "python_mode", "compile_debug", "distributed_debug", "blocking_launches", "debug_build", "dev_mode"),
    *("malloc_debug", "verbose_logs", "verbose_logging", "deterministic", "fill_uninitialized_memory"),
)


@dataclass(frozen=True)
class Setting:
    """A debug or performance setting that was on in the run, and where it was switched on (None: environment or library)."""

    name: str  # one of SETTINGS
    value: str
    location: Location | None
    share: float | None = None  # time in the aid's own calls between the steps ÷ wall time of training, where it makes any


@dataclass(frozen=True)
class Written:
    """A line of the owner's that opens a file for writing, or writes; `often`: again and again. `state`: what it writes is the model's.

    `unheard`: it is a log call whose level nobody listens to.
    """

    location: Location
    often: bool
    state: bool = False
    unheard: bool = False


@dataclass(frozen=True)
class ThreadBeside:
    """A busy Python thread beside the training one: CPU time ÷ wall, and the owner's line where it was seen most often."""

    name: str
    cpu_share: float
    location: Location | None
    makes: bool = False  # it hands batches to the training thread


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
    thread_cpu_share: float | None = None  # the training thread's time on a core ÷ wall
    beside: tuple[ThreadBeside, ...] = ()  # busiest first
    standing_share: float | None = None  # neither on a core nor runnable ÷ wall, from a forward to its update; None: nobody was beside
    helpers_cpu_share: float | None = None  # CPU time of the process that no Python thread used ÷ wall; asked as the one before


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
    forwards: tuple[Location, ...] = ()  # Eval: lines that lead to forwards


@dataclass(frozen=True)
class StartUp:
    """Sampled time of the training thread from the import of torch to the first event, before the steady part and outside all shares."""

    own_s: float  # in the owner's lines and what they call
    importing_s: float
    lines: tuple[tuple[Location, float], ...]  # seconds of the owner's lines, costliest first


@dataclass(frozen=True)
class WhatIf:
    """A measured replay: how much faster steps are when one cost is taken away in a throw-away run."""

    kind: str  # the finding's kind that it belongs to
    replaced: str  # what was replayed or left out: "samples", "batches", "collated", a function, a setting
    location: Location | None
    speedup: float
    ci_low: float | None
    ci_high: float | None
    blocks: int


@dataclass(frozen=True)
class PaddedField:
    """A field of a batch whose last columns are padding in all rows: its key, or place, or None where the batch is one tensor."""

    key: str | int | None
    fill: bool | int | float
    width: int  # columns of all its batches
    dims: int = 2  # (rows, width, …)


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
    common_padding_share: float | None = None  # share of input elements that no row of their batch needs, part of the one above
    padded: tuple[PaddedField, ...] = ()  # fields of a training batch that can lose their last columns together; none where unclear
    padded_by: Location | None = None  # the program's own function or generator that makes these batches; None for a loader
    fixed_width_at: Location | None = None  # the owner's line whose tokenizer, of transformers, pads all texts to a fixed length
    input_shapes: int | None = None  # distinct shapes of the first input
    listed_numbers: int = 0  # tensors in the longest list of a training batch, each with one number of every sample
    data_function: Location | None = None  # the owner's function whose tensors enter the network, where there is no DataLoader
    written: tuple[Written, ...] = ()
    imported: tuple[str, ...] = ()  # the owner's Python files that ran, in the order of their import; empty: not recorded
    started: tuple[Started, ...] = ()
    evaluation_input: EvaluationInput | None = None  # None: no stacks, or no evaluation
    worker_memory: WorkerMemory | None = None  # None: no workers, or no two readings of any
    input_tail: InputTail | None = None
    sync_points: tuple[SyncPoint, ...] = ()  # costliest first
    compilation: Compilation | None = None
    collections: Collections | None = None
    recompute: tuple[Recompute, ...] = ()
    forward_repeats: tuple[ForwardRepeat, ...] = ()  # costliest first
    frozen_repeats: tuple[FrozenRepeat, ...] = ()  # costliest first
    in_vain: tuple[InVain, ...] = ()  # costliest first
    undone_layout: UndoneLayout | None = None
    memory: Memory | None = None
    attention: tuple[Attention, ...] = ()
    ignored_targets: tuple[IgnoredTargets, ...] = ()  # costliest first
    operators: Operators | None = None
    updates: Updates | None = None
    parts: Parts | None = None
    numerics: Numerics | None = None
    communication: Communication | None = None
    rank_stats: tuple[RankStat, ...] = ()  # of all ranks seen, by rank; one where there is one
    rank_what_if: tuple[RankWhatIf, ...] = ()  # empty for one rank, and where the model does not give the measured step
    telemetry: Telemetry | None = None
    device_time: DeviceTime | None = None
    what_if: tuple[WhatIf, ...] = ()
    startup: StartUp | None = None
    stopped: bool = False  # ended by us at a step boundary: `wall_s` is not the program's own
    sites: tuple[Site, ...] = ()  # costliest first
    python_in_network: float | None = None  # share of Python inside forward, backward and update, at most; None: not recorded
    trend: Trend | None = None  # None: too few steps
    steady: bool | None = None  # False: step times never settled within the first half; None: too few steps to tell

    def batches_a_pass(self, loader: LoaderFacts) -> float | None:
        """About how many batches training takes of each pass over `loader`: those made in its own process, or else one for each step."""
        steps = self.steps + self.warmup_steps
        alone = loader.getitem_ms.n / max(1, self.steps) if loader.getitem_ms is not None and not loader.num_workers else 0.0
        return steps * max(1.0, alone) / loader.epochs if loader.epochs and steps else None

    def busiest_loader(self, role: str) -> LoaderFacts | None:
        """Of several loaders of `role` the one that was waited for most; where that was not timed, the one iterated over most samples."""
        found = [loader for loader in self.loaders if loader.role == role]
        return max(found, key=lambda loader: (loader.wait_s or 0.0, loader.epochs * (loader.dataset_len or 1)), default=None)
