"""What a trace holds: numpy arrays and typed facts, per process. All times are CLOCK_MONOTONIC nanoseconds, comparable between the
processes of one machine; arrays are int64 unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trainflash.schema.runs import Location
from trainflash.schema.sites import Peaks
from trainflash.schema.summaries import PaddedField, Setting, StartUp, Written
from trainflash.stacks import Stack
from trainflash.trace.calls import CallTrace
from trainflash.trace.computing import ComputeTrace


@dataclass(frozen=True)
class Occurrences:
    """All spans of one phase in one process, in order: outermost spans of that phase only (a `save` inside a `save` is one).

    `exclusive_ns` is what counts for this phase (spans of other phases inside it are taken out); `step` is the index of the step in which
    the span began, -1 before the first step and `steps` after the last.
    """

    start_ns: np.ndarray
    end_ns: np.ndarray
    exclusive_ns: np.ndarray
    step: np.ndarray


PARTS = ("", "getitem", "collate", "waiting", "in_step")


@dataclass(frozen=True)
class Samples:
    """Time-weighted samples of the training (or worker) thread's innermost line of the owner's code.

    `weight_ns` is the time since the sample before; `place` indexes `locations` (-1: no frame of the owner on the stack);
    `phase` indexes `schema.runs.PHASES` (in a worker process it is all Data); `step` as in `Occurrences`; `part` indexes `PARTS`: where in
    the making of a batch the sample lies (None: not known).
    """

    t_ns: np.ndarray
    weight_ns: np.ndarray
    place: np.ndarray
    phase: np.ndarray
    step: np.ndarray
    locations: tuple[Location, ...]
    part: np.ndarray | None = None
    libraries: tuple[str, ...] = ()  # by place: the library that the line had called, which knows nothing of tensors; "" else
    stack: np.ndarray | None = None  # index into `stacks`, -1 where it is not known; None in older recordings
    stacks: tuple[Stack, ...] = ()


@dataclass(frozen=True)
class Fetches:
    """Batches fetched in one process, in order; empty unless captured with `diagnose`.

    `getitem_ns` is the time in the dataset for the whole batch, `collate_ns` in `collate_fn`, `cpu_ns` the CPU time of the fetching
    thread during both (`cpu ÷ (getitem + collate)` near 1 computes, near 0 waits), `runq_ns` how long it was runnable without a core
    (-1 for a batch of which neither was asked: of short ones only some are; None: never asked). What is left of the wall time, it was
    blocked.
    """

    start_ns: np.ndarray
    getitem_ns: np.ndarray
    collate_ns: np.ndarray
    cpu_ns: np.ndarray
    runq_ns: np.ndarray | None = None

    def where(self, chosen: np.ndarray) -> Fetches:
        """The fetches that a mask chooses."""
        columns = (self.start_ns, self.getitem_ns, self.collate_ns, self.cpu_ns, self.runq_ns)
        return Fetches(*(None if column is None else column[chosen] for column in columns))


@dataclass(frozen=True)
class SampleTimes:
    """Times of single samples of one loader in one process: how many, their median, and the slowest: index, ns, times seen, file."""

    loader: int  # -1: the one that this worker serves
    count: int
    usual_ns: int
    slow: tuple[tuple[int, int, int, str | None], ...]


@dataclass(frozen=True)
class LoaderTrace:
    """One `DataLoader` as constructed in this process, and what it did here."""

    id: int
    role: str  # "train" (a batch of it led to a backward), "eval", or "unused" (never iterated, or unknown)
    location: Location | None
    num_workers: int
    batch_size: int | None
    persistent_workers: bool
    pin_memory: bool
    prefetch_factor: int | None
    shuffles: bool
    own_generator: bool
    iterable: bool
    drop_last: bool
    dataset: str  # class name
    dataset_location: Location | None  # of `__getitem__` or `__iter__`
    collate_location: Location | None  # of the owner's code that joins samples
    dataset_len: int | None
    sample_bytes: int | None  # of one element of a batch
    iter_at_ns: np.ndarray  # when each `iter(loader)` began
    iter_ns: np.ndarray  # how long it took
    first_batch_ns: np.ndarray  # wait for the first batch after it
    batches: int  # waits of the training process, the one that ends each epoch included
    wait_ns: np.ndarray  # each wait for a batch in the training process
    fetches: Fetches  # in this process (num_workers = 0); with workers see `Trace.workers` whose `loader` is this id
    times: SampleTimes | None = None  # of samples, in this process
    collator_made_at: Location | None = None  # the owner's line that made a library's object for it
    classes: tuple[tuple[str, str], ...] | None = None  # file and name of the owner's that it is made of; None: not all known
    batched: bool = False  # the dataset was seen to make whole batches, in this process
    draws: bool | None = None  # making its batches draws random numbers, in this process
    joined_at: Location | None = None  # the owner's function that most of joining its samples passed in, in this process


@dataclass(frozen=True)
class RepeatedCall:
    """A function of the owner that was called again with equal arguments and gave an equal result, seen in sampled windows.

    `where` says in which windows: "fetch" (single `dataset[i]` calls), "collate" (`collate_fn` of batches with a sample that is traced in
    each pass), "gap" (time between phases where data is made by hand) or "forward" (from a forward to its backward). `comparable` is how
    many of the calls could have repeated an earlier one: for "fetch" and "collate" those for samples that an earlier window held too, and
    those that did; else all of them.
    `window_ns` is the traced length of all windows of that kind in this process, so `inclusive_ns ÷ window_ns` estimates its
    share of them as long as calls cost the same (tracing slows both alike, roughly). `caller` is the nearest traced function of the owner
    around it, "" for the outermost.
    """

    location: Location
    qualname: str
    role: str  # "main" or "worker"
    where: str
    caller: str
    calls: int
    repeats: int
    distinct: int
    inclusive_ns: int  # all calls
    repeat_ns: int  # the calls that repeated an earlier one
    window_ns: int
    hashable: bool
    is_method: bool
    result_bytes: int | None
    comparable: int = 0
    loader: int | None = None  # whose batches were made, where known
    sampled: int = 0  # different samples that the windows held; 0 where they are not of single samples
    containers: bool = False  # arguments that are no keys are arrays, or dictionaries and lists of a few


@dataclass(frozen=True)
class DataFunction:
    """A function of the owner, without `DataLoader`, whose returned tensors feed the model; calls of it are phase Data."""

    location: Location
    qualname: str


@dataclass(frozen=True)
class EvalTrace:
    """One evaluation, aligned with `occurrences["Eval"]` by `start_ns`."""

    start_ns: int
    location: Location | None  # the owner's function that runs it
    batches: int  # root forwards
    batch_size: int | None  # largest leading dimension of a first input
    grad_enabled: bool | None  # at its first forward
    forwards: tuple[Location, ...] = ()  # the owner's lines that led to its first forwards


@dataclass(frozen=True)
class SaveTrace:
    """One checkpoint write (`torch.save`, `safetensors`, a framework's saver)."""

    start_ns: int
    duration_ns: int
    location: Location | None
    bytes: int | None


@dataclass(frozen=True)
class LogTrace:
    """All log calls of one line of the owner's: `source` is print, logging, tensorboard, wandb, framework."""

    location: Location | None
    source: str
    count: int
    total_ns: int


@dataclass(frozen=True)
class BatchTrace:
    """Facts about the inputs, from sampled batches: `shapes` counts each shape of the first input seen."""

    shapes: dict[tuple[int, ...], int]
    elements: int  # integer elements looked at for padding
    padding: int  # of these, how many a mask or a constant run at one end of the rows says are padding
    signatures: int = 0  # distinct shapes of all tensors of a batch together
    common_padding: int | None = None  # of the padding, what no row of its batch needs; None in older recordings
    padded: tuple[PaddedField, ...] = ()  # fields whose last columns are common padding; none where one of that width is not understood
    listed: int = 0  # tensors in the longest list of a batch, each with one number of every row
    padded_by: Location | None = None  # the data function that makes these batches; None for a loader
    fixed_width_at: Location | None = None  # the owner's line whose tokenizer pads all texts to a fixed length


@dataclass(frozen=True)
class CpuReading:
    """CPU time since the process began; None where the kernel does not tell."""

    t_ns: int
    cpu_ns: int | None  # of the process and its reaped and live children
    runq_ns: int | None  # time the training thread was runnable without a core
    oncpu_ns: int | None  # of the training thread


@dataclass(frozen=True)
class BesideThread:
    """A Python thread beside the training one that was busy: `cpu_ns` of CPU time, and the owner's line where it was seen most often."""

    name: str
    cpu_ns: int
    location: Location | None
    makes: bool  # it hands batches to the training thread


@dataclass(frozen=True)
class Beside:
    """Such threads in `wall_ns` during which all of them lived, and what the training thread did while it worked, in sampled steps.

    `work_ns` is wall time from a forward to the update behind it; `work_cpu_ns` of it on a core, `work_runq_ns` runnable without one.
    `helpers_ns` is the process's CPU time that no Python thread used: compute threads.
    """

    wall_ns: int
    threads: tuple[BesideThread, ...]
    work_ns: int
    work_cpu_ns: int
    work_runq_ns: int
    helpers_ns: int


@dataclass(frozen=True)
class ThreadFacts:
    """CPU budget of the process, and what it had used when it was read, in order of time."""

    affinity: int | None
    cgroup_cpus: float | None
    torch_threads: int | None
    interop_threads: int | None
    omp_num_threads: str | None
    set_at: Location | None
    cpu: tuple[CpuReading, ...] = ()
    beside: Beside | None = None


@dataclass(frozen=True)
class Collectives:
    """Calls on the training thread that talk to other ranks, in order. A backward that reduces gradients is one: its `host_ns` is what was
    left to do after the last gradient was ready, so what backward could not hide.
    """

    end_ns: np.ndarray
    host_ns: np.ndarray
    bytes: np.ndarray
    called: np.ndarray  # bool; False: waiting for an earlier call
    reduction: np.ndarray  # bool; gradients of backward
    phase: np.ndarray  # indexes `schema.runs.PHASES`
    step: np.ndarray  # as in `Occurrences`

    def per_step(self, steps: int) -> np.ndarray:
        """How many lie in each of the first `steps` steps."""
        return np.bincount(self.step[(self.step >= 0) & (self.step < steps)], minlength=steps)


@dataclass(frozen=True)
class CollectiveLine:
    """All calls of one operation from one line of the owner's, over the whole run."""

    location: Location | None
    operation: str
    calls: int
    total_ns: int
    bytes: int


@dataclass(frozen=True)
class Parallel:
    """How the process talks to others, as torch says it. The two times are means of DDP's own timers over the steps that it samples."""

    backend: str
    wrapper: str  # "DDP", "FSDP", "FSDP2", "" for none
    location: Location | None  # where the owner wraps the model
    find_unused_parameters: bool | None = None
    static_graph: bool | None = None
    bucket_cap_mb: float | None = None
    buckets: int | None = None
    reduced_bytes: int | None = None  # gradients of one reduction
    comm_ns: int | None = None
    overlap_ns: int | None = None
    lines: tuple[CollectiveLine, ...] = ()


@dataclass(frozen=True)
class DeviceTimeline:
    """All on the host's clock.

    Spans: from `start_ns` to `end_ns` the device was between two boundaries, which the host had recorded at `queued_ns` and `left_ns`; in
    between the host was in `phase` (index into `schema.runs.PHASES`). `moved_ns[p, i]` is what attribution adds to phase p in step i: it
    takes waits from the phase that waited and gives them to those whose device work was waited for; each column adds up to 0.
    """

    start_ns: np.ndarray
    end_ns: np.ndarray
    queued_ns: np.ndarray
    left_ns: np.ndarray
    phase: np.ndarray
    main: np.ndarray  # bool: on the program's own stream
    work_ns: np.ndarray  # part of the span in which the device worked, as far as boundaries can tell
    wait_from_ns: np.ndarray
    wait_to_ns: np.ndarray
    moved_ns: np.ndarray
    complete: np.ndarray  # bool, per step: every boundary of it has an event that was read
    lag_ns: np.ndarray  # float, per step: how far the device was behind the host at the step's end; NaN: not known
    uncertainty_ns: float  # of the alignment: half the distance of its bounds, in the median
    dropped: int


@dataclass(frozen=True)
class RankTrace:
    """One training process.

    `step_start_ns` has n+1 entries: starts of the n steps and the end of the last. `phase_ns[name][i]` is the exclusive time of phase
    `name` in step i; over all nine phases these add up exactly to `step_start_ns[i+1] − step_start_ns[i]`.
    """

    pid: int
    rank: int
    world_size: int
    argv: tuple[str, ...]
    process_start_ns: int
    end_ns: int  # last event
    step_start_ns: np.ndarray
    phase_ns: dict[str, np.ndarray]
    occurrences: dict[str, Occurrences]
    samples: Samples
    device: str  # "cpu" or "cuda:<name>"
    epochs: int | None  # how often the training loader was iterated; None: no loader
    epoch_at_ns: np.ndarray  # when each began
    loaders: tuple[LoaderTrace, ...] = ()
    repeated: tuple[RepeatedCall, ...] = ()
    data_functions: tuple[DataFunction, ...] = ()
    settings: tuple[Setting, ...] = ()
    written: tuple[Written, ...] = ()
    startup: StartUp | None = None
    evaluations: tuple[EvalTrace, ...] = ()
    saves: tuple[SaveTrace, ...] = ()
    logs: tuple[LogTrace, ...] = ()
    batch: BatchTrace | None = None
    threads: ThreadFacts | None = None
    versions: dict[str, str] = field(default_factory=dict)
    swallowed: dict[str, int] = field(default_factory=dict)
    dropped_events: int = 0
    host: str = ""
    sources: dict[str, int] = field(default_factory=dict)  # checksums of the owner's files that this rank runs
    imported: tuple[str, ...] = ()  # the owner's files, below the project, in the order of their import; empty: not recorded
    collectives: Collectives | None = None  # None: not recorded
    parallel: Parallel | None = None  # None: the process talked to no other
    steps_from: int = 0  # the steps before this one may be parts of steps
    left_out: tuple[int, ...] = ()  # steps that the probe slowed, because it looked closer
    computing: ComputeTrace | None = None
    calls: tuple[CallTrace, ...] = ()  # steps whose calls of torch were recorded with their lines
    peaks: Peaks | None = None  # of the machine; None: not measured in this run
    forward_lines: frozenset[Location] = frozenset()  # the owner's lines between the phases that were seen to make a part of the graph
    bare_modules: frozenset[tuple[str, str]] = frozenset()  # file and name of forwards of called modules without any parameters
    device_timeline: DeviceTimeline | None = None  # None: no CUDA events

    @property
    def steps(self) -> int:
        """Number of complete steps."""
        return max(0, len(self.step_start_ns) - 1)

    @property
    def wall_ns(self) -> np.ndarray:
        """Wall time of each step."""
        return np.diff(self.step_start_ns)


@dataclass(frozen=True)
class WorkerMemoryReading:
    """Of one worker, since it began: batches made, page faults, CPU time, that in the kernel; `private`: bytes that it shares with none."""

    t_ns: int
    batches: int
    private: int
    faults: int
    system_ns: int
    cpu_ns: int


@dataclass(frozen=True)
class WorkerTrace:
    """One DataLoader worker process. `parent` is the pid of its training process, `loader` the id there (None: unknown)."""

    pid: int
    parent: int
    loader: int | None
    process_start_ns: int
    fetches: Fetches
    samples: Samples
    repeated: tuple[RepeatedCall, ...] = ()
    times: SampleTimes | None = None
    batched: bool = False
    draws: bool | None = None
    joined_at: Location | None = None
    swallowed: dict[str, int] = field(default_factory=dict)
    dropped_events: int = 0
    memory: tuple[WorkerMemoryReading, ...] = ()


@dataclass(frozen=True)
class Trace:
    """Everything one run's probe wrote. `ranks` is sorted by rank and holds the processes that trained together; never empty.

    `others`: a sentence for each other training of the same run, and for what the ranks do not have in common.
    """

    run_dir: str
    ranks: tuple[RankTrace, ...]
    workers: tuple[WorkerTrace, ...] = ()
    notices: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    stopped: bool = False  # the probe ended the program at a step boundary
