"""What one run was seen to do: `summary.v1`. `None` means not measured.

History: v1, first version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from trainflash.schema.runs import Location


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
    part: Literal["", "getitem", "collate", "waiting"] = ""  # where a batch is made: which part of it; waiting: for a request


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
    runqueue_share: float | None = None  # time runnable without a core ÷ wall time while fetching
    slow_samples: tuple[SlowSample, ...] = ()  # slowest first
    batched: bool = False  # the dataset has `__getitems__`, or a batch sampler hands it whole batches
    starts: int | None = None  # times that its workers were started; None: none was seen
    pass_ms: Spread | None = None  # Data time beyond the usual around each steady pass's begin, until every worker has sent a batch


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


@dataclass(frozen=True)
class Setting:
    """A debug or performance setting that was on in the run, and where it was switched on (None: environment or library)."""

    name: str  # e.g. "anomaly_mode", "profiler", "gradcheck", "blocking_launches", "deterministic"
    value: str
    location: Location | None
    share: float | None = None  # time in the aid's own calls between the steps ÷ wall time of training, where it makes any


@dataclass(frozen=True)
class Hook:
    """A function of the owner's that torch calls while the network runs: a hook of modules, parameters or of all of them."""

    location: Location  # the `def` line
    places: int  # modules and parameters that it hangs on


@dataclass(frozen=True)
class Written:
    """A line of the owner's that opens a file for writing, or writes; `often`: again and again. `state`: what it writes is the model's."""

    location: Location
    often: bool
    state: bool = False


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
class SyncPoint:
    """A line of the owner's that made the host wait for the device, or copied a tensor to the host."""

    location: Location | None
    call: str  # item, cpu, tolist, numpy, bool, print, synchronize, empty_cache, nonzero
    count: int  # in the steady part
    mean_ms: float
    share: float  # host time inside these calls ÷ steady wall time
    on_device: bool  # the tensor was on a device; False: no wait, only the call's own cost
    phase: str = "Other"


@dataclass(frozen=True)
class Compilation:
    """What torch.compile did, from torch's own counters and callbacks."""

    frames: int  # compilations in the whole run
    steady: int  # of these in the steady part
    share: float  # time spent compiling ÷ steady wall time
    mean_ms: float | None
    graph_breaks: int
    reasons: tuple[str, ...] = ()  # of recompilations, as torch says them, most frequent first, at most 5
    by_shape: bool = False  # reasons name a size, stride or an int argument that changed
    limit_hit: bool = False  # torch gave up and runs the function uncompiled
    location: Location | None = None  # the call of torch.compile; where there are several, the function that was compiled again


@dataclass(frozen=True)
class Collections:
    """Python's garbage collector while training."""

    count: int  # in the steady part, all generations
    full: int  # of generation 2
    share: float  # of the steady wall time
    mean_ms: float
    called: int  # by gc.collect() of the program
    location: Location | None  # the owner's line that calls gc.collect()


@dataclass(frozen=True)
class Recompute:
    """Forward work done again during backward (activation checkpointing)."""

    location: Location | None  # the owner's line that asks for it
    per_step: float  # checkpointed calls
    share: float  # time spent recomputing ÷ steady wall time


@dataclass(frozen=True)
class Started:
    """Processes or threads that the owner's line starts while training, workers of a DataLoader not counted."""

    location: Location | None
    what: Literal["process", "thread"]
    count: int  # in the steady part: pools, processes or threads
    share: float  # time of starting and ending them ÷ steady wall time


@dataclass(frozen=True)
class Memory:
    """Memory of the training process (and its children) and of its device."""

    host_peak_bytes: int | None = None  # resident
    host_limit_bytes: int | None = None  # the machine's or the control group's, the smaller
    pressure_share: float | None = None  # time tasks stalled for memory ÷ wall (PSI), where the kernel says it
    limit_events: int | None = None  # times the control group hit its limit during the run
    major_faults: float | None = None  # per steady step
    swapped_bytes: int | None = None
    device_peak_bytes: int | None = None
    device_reserved_bytes: int | None = None
    device_total_bytes: int | None = None
    alloc_retries: int | None = None
    empty_cache_calls: int = 0  # by the program while training
    empty_cache_share: float = 0.0
    empty_cache_at: Location | None = None


@dataclass(frozen=True)
class Attention:
    """Attention that does not run in a fused kernel."""

    kind: Literal["hand_written", "math_fallback"]
    location: Location | None  # the softmax or scaled_dot_product_attention call
    share: float  # estimated: of the steady wall time, forward and backward
    per_step: float
    shape: tuple[int, ...]  # of the scores: batch, heads, queries, keys
    reason: str = ""  # why a fused kernel was not taken, where known


@dataclass(frozen=True)
class Operators:
    """Census of the operators of a few early steps, on the host (those steps are left out of all statistics)."""

    steps: int
    per_step: float  # operator calls, forward, backward and update
    op_ms: float  # time inside operators per step, outermost ones
    step_ms: float  # wall of those steps
    small_share: float  # part of `op_ms` in operators below 20 µs each
    optimizer_per_step: float | None = None  # operator calls inside the optimizer
    conv_share: float | None = None  # part of `op_ms`
    matmul_share: float | None = None
    copy_share: float | None = None  # copies, casts and layout changes
    kernels_per_step: float | None = None  # device kernels launched, where a device is used


@dataclass(frozen=True)
class Updates:
    """How the program updates its parameters."""

    optimizer: str  # class name of the costliest
    location: Location | None  # where the owner constructs it
    fused: bool | None
    foreach: bool | None
    tensors: int  # parameters in its groups
    elements: int
    optimizers: int
    backwards_per_step: float  # gradient accumulation where above 1 with one optimizer
    micro_batch: int | None  # leading dimension of a root's first input in training
    zero_to_none: bool | None = None
    grad_scaler: bool = False


@dataclass(frozen=True)
class Parts:
    """A batch that goes through the network in parts of one shape, call by call, before one backward."""

    location: Location  # the owner's line that calls the network
    calls: int  # in a step
    rows: int  # of a part


@dataclass(frozen=True)
class Numerics:
    """Number formats and layouts of training."""

    parameter_dtype: str  # e.g. float32
    autocast: str | None  # dtype inside autocast during training forwards; None: not used
    matmul_precision: str | None  # torch.get_float32_matmul_precision()
    tf32_matmul: bool | None
    tf32_cudnn: bool | None
    capability: tuple[int, int] | None  # of the CUDA device
    bf16_supported: bool | None
    cudnn_benchmark: bool | None
    deterministic: bool
    convolutions: int  # Conv2d and Conv3d modules in trained roots
    channels_last: bool | None  # layout of 4-d inputs of the roots; None: none seen
    compiled: bool  # torch.compile is used


@dataclass(frozen=True)
class Communication:
    """Collectives of the training process, as rank 0 saw them."""

    backend: str
    wrapper: str  # "DDP", "FSDP", "FSDP2", "collectives"
    share: float  # host time waiting in collectives that nothing hides ÷ steady wall time
    per_step_ms: float
    calls_per_step: float | None
    bytes_per_step: float | None
    overlap: float | None  # part of the communication that backward hides, 0 to 1
    find_unused_parameters: bool | None = None
    static_graph: bool | None = None
    bucket_cap_mb: float | None = None
    syncs_per_step: float | None = None  # gradient reductions; above 1 with accumulation: no no_sync()
    wait_share: float | None = None  # of `share`: waiting for a later rank, not transferring
    location: Location | None = None  # where the owner wraps the model, or calls the costliest collective


@dataclass(frozen=True)
class RankWhatIf:
    """A step as it would be if ranks were other than they are, predicted from durations between collectives.

    `speedup` is of the work done per second, so twice the ranks would give 2 without waiting and with a free transfer.
    """

    name: Literal["level", "balanced", "double"]
    what: str
    step_ms: float
    speedup: float
    assumes: str


@dataclass(frozen=True)
class RankStat:
    """One rank over the steady part, means per step. `own_ms` is phase time without waiting for other ranks."""

    rank: int
    host: str
    step_ms: float
    phases_ms: dict[str, float]
    own_ms: dict[str, float]
    waiting_ms: float | None  # in collectives, for others and for transfer
    steps: int
    samples_per_step: float | None = None
    hottest: dict[str, Location] = field(default_factory=dict)  # the owner's line with most sampled time of this rank, by phase


@dataclass(frozen=True)
class GpuStat:
    """One GPU over the run; shares from 0 to 1, means unless said."""

    index: int
    name: str
    samples: int
    busy: float | None  # utilisation: share of time with any kernel
    memory_busy: float | None
    memory_used_bytes: int | None  # most
    memory_total_bytes: int | None
    pcie_rx_mb_s: float | None  # host to device
    pcie_tx_mb_s: float | None
    power_w: float | None
    power_limit_w: float | None
    sm_clock_mhz: float | None
    sm_clock_max_mhz: float | None
    temperature_c: float | None  # most
    throttled: dict[str, float] = field(default_factory=dict)  # reason -> share of samples; idle and user limits left out
    sawtooth: bool | None = None  # swings between idle and busy


@dataclass(frozen=True)
class HostStat:
    """The machine and the control group over the run."""

    samples: int
    cpus: float | None  # budget: affinity and quota, the smaller
    cpu_used: float | None  # cores used by the program's processes
    throttled_share: float | None  # time the quota stopped the group ÷ wall
    throttled_periods: int | None
    pressure_cpu: float | None
    load: float | None  # whole machine, cores
    memory_used_bytes: int | None  # the group's most
    memory_limit_bytes: int | None
    memory_events: int | None  # times at the limit, and kills
    swap_used_bytes: int | None
    disk_read_mb_s: float | None  # the program's processes, from the device
    disk_write_mb_s: float | None
    read_mb_s: float | None  # by read calls, page cache included
    network_mb_s: float | None  # both directions, the machine's or the namespace's
    shm_used_bytes: int | None
    shm_total_bytes: int | None
    processes: int | None
    pressure_memory: float | None = None  # share of the time in which some task stalled for memory (PSI)
    pressure_io: float | None = None


@dataclass(frozen=True)
class Telemetry:
    """What machine and devices did during the run; None: not measurable here."""

    interval_s: float
    host: HostStat | None
    gpus: tuple[GpuStat, ...] = ()


@dataclass(frozen=True)
class DeviceTime:
    """The device's timeline, by CUDA events at phase boundaries."""

    steps: int  # with complete device times
    busy_share: float  # device spans of phases with work ÷ steady wall time; a span contains short idle gaps
    lag_ms: float | None  # median host-to-device lag at the step's end; near 0: the host is the bottleneck
    lag_share: float | None  # `lag_ms` ÷ mean step
    dropped: int  # boundaries without an event (full queue, graph capture)


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
    written: tuple[Written, ...] = ()
    started: tuple[Started, ...] = ()
    hooks: tuple[Hook, ...] = ()
    input_tail: InputTail | None = None
    sync_points: tuple[SyncPoint, ...] = ()  # costliest first
    compilation: Compilation | None = None
    collections: Collections | None = None
    recompute: tuple[Recompute, ...] = ()
    memory: Memory | None = None
    attention: tuple[Attention, ...] = ()
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
    stopped: bool = False  # ended by us at a step boundary: `wall_s` is not the program's own
    steady: bool | None = None  # False: step times never settled within the first half; None: too few steps to tell
