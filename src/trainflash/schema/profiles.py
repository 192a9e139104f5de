"""What a profiler's trace says, small enough to read: `profile_summary.v1`.

A superset of the schema that marin-community's profiling tools write under the same name: fields of the same meaning have the same name.
Those names carry no unit, so each class that has one says it in `duration_unit` ("us": microseconds, to the nanosecond); all other
durations end in their unit. Shares are from 0 to 1. `None` means not measured or not knowable from this trace, never 0.

`digest` is the sha256 of the document without itself, `generated_at_utc`, `source_path`, `run_metadata` and `xprof` (whose
tables depend on what is installed): equal traces give equal digests.

History: v1, first version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from trainflash.schema.findings import Evidence, Kind

BreakdownMode = Literal["exclusive_global", "exclusive_per_track", "inclusive"]
IdleCauseName = Literal[
    "data_loading", "launch_bound", "synchronization", "copy", "collective_wait", "no_work", "queued", "unknown",
]  # fmt: skip
NOT_HASHED = ("digest", "generated_at_utc", "source_path", "run_metadata", "xprof")


@dataclass(frozen=True)
class RunMetadata:
    """The run that the profile belongs to, as far as its source says. No part of the digest."""

    run_path: str | None = None
    run_id: str | None = None
    artifact_ref: str | None = None
    artifact_name: str | None = None
    hardware_type: str | None = None
    mesh_or_topology: str | None = None
    git_sha: str | None = None
    config_hash: str | None = None
    num_devices: int | None = None
    num_hosts: int | None = None


@dataclass(frozen=True)
class TraceOverview:
    """How much was recorded, and how far it can be trusted."""

    display_time_unit: str | None
    num_events_total: int
    num_complete_events: int
    num_processes: int
    num_threads: int
    profile_start_ts: float | None  # in microseconds of the trace's clock
    profile_end_ts: float | None
    duration_basis: str  # the unit of the two above
    duration_us: float | None  # from the first event to the end of the last
    num_ranks: int
    world_size: int | None  # ranks that the job had; None: not recorded
    suspected_truncation: bool
    quality_warnings: tuple[str, ...]


@dataclass(frozen=True)
class TraceProvenance:
    """What was traced, so that two summaries can be told apart or joined."""

    trace_sha256: str | None  # of the content: whatever the file's name, compression or order
    run_ids: tuple[str, ...] = ()
    source_file_hints: tuple[str, ...] = ()  # files of the program that the trace names
    workload: dict[str, str] = field(default_factory=dict)  # what must be equal in a comparison: ranks, devices
    xla_flags: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    readability_run: tuple[
        str, ...
    ] = ()  # settings of this run that slow it down for the sake of names; not empty: never compare its times


@dataclass(frozen=True)
class DurationStats:
    """Statistics of a set of durations."""

    count: int
    mean: float | None
    median: float | None
    p90: float | None
    min: float | None
    max: float | None
    duration_unit: str = "us"


@dataclass(frozen=True)
class StepClassSummary:
    """Steps of one kind, where two kinds can be told apart (such as every eighth step with an update)."""

    name: Literal["light", "heavy"]
    count: int
    fraction_of_steady: float
    duration_stats: DurationStats
    representative_step: int | None
    representative_duration: float | None
    periodicity: int | None  # every so many steps; None: irregular
    duration_unit: str = "us"


@dataclass(frozen=True)
class Step:
    """One step: from its mark to the next one. Over ranks: the slowest rank's."""

    number: int
    duration_us: float
    warmup: bool
    slowest_rank: int | None = None


@dataclass(frozen=True)
class StepTimeSummary:
    """Step times. `basis` says which marks they rest on."""

    warmup_steps_ignored: int
    all_steps: DurationStats
    steady_state_steps: DurationStats
    classes: tuple[StepClassSummary, ...]
    basis: Literal["step_markers", "optimizer_steps", "device_steps", "xprof", "none"]
    steps: tuple[Step, ...] = ()  # at most 200, in order
    data_loading_mean_us: float | None = None  # in a steady step, while no operator ran (on the device, where there is one)


@dataclass(frozen=True)
class BreakdownPart:
    """One class of time."""

    total_duration: float
    share_of_total: float
    duration_unit: str = "us"


@dataclass(frozen=True)
class TimeBreakdown:
    """Where the time of the window went.

    `exclusive_global`: each instant of each rank counted once, device work before host work; the parts add up to `total_duration`.
    `exclusive_per_track`: the same for each stream by itself; they add up to the window times the streams.
    `inclusive`: sums of durations; concurrent events count several times, so the parts may exceed the window.
    `host`: no device worked, and the host did something. `stall`: neither did. Without a device `compute` is what the operators took.
    """

    duration_basis: BreakdownMode
    total_duration: float
    compute: BreakdownPart
    communication: BreakdownPart
    copy: BreakdownPart
    host: BreakdownPart
    stall: BreakdownPart
    other: BreakdownPart
    window_us: float  # of wall time, all ranks together
    window_start_us: float | None  # of the first rank, on the trace's clock
    tracks: int  # over which `total_duration` runs
    duration_unit: str = "us"


@dataclass(frozen=True)
class DeviceUse:
    """One device over the whole trace, warm-up included."""

    rank: int | None
    device: str
    name: str | None
    kernels: int
    kernel_sum_us: float  # sum of durations: not wall time
    busy_us: float  # instants at which a kernel, copy or memset ran
    kernel_busy_us: float  # instants at which a kernel ran
    span_us: float  # from its first to the end of its last event
    communication_sum_us: float
    utilization: float | None  # kernel_busy ÷ the traced steps, or the span where there are none
    streams: int


@dataclass(frozen=True)
class HotOp:
    """All events of one name. Of a device where there is one, else operators of the host."""

    name: str
    canonical_name: str
    category: str
    count: int
    total_duration: float
    exclusive_duration: float  # without what it contains on its own track
    avg_duration: float
    shape_signature: str | None = None  # input shapes that took most of its time
    source_file: str | None = None
    tf_op_path: str | None = None  # the scope in which it took most of its time
    flop_proxy_per_invocation: float | None = None
    launched_by: str | None = None  # host operator behind most of its time
    family: str = "other"
    share_of_total: float | None = None  # of the sum of all such durations
    slowest_rank: int | None = None  # the rank with most of it, where there are several
    slowest_rank_duration: float | None = None
    duration_unit: str = "us"


@dataclass(frozen=True)
class SemanticFamilyAggregate:
    """All device ops of one family, such as attention or matmul."""

    family: str
    count: int
    total_duration: float
    exclusive_duration: float
    share_of_total: float
    avg_duration: float
    avg_exclusive_duration: float
    example_op: str | None
    dominant_shape_signature: str | None
    flop_proxy_total: float | None
    time_per_flop_proxy: float | None
    duration_unit: str = "us"


@dataclass(frozen=True)
class CommunicationOp:
    """All calls of one collective, over all ranks.

    Bandwidths as nccl-tests define them, over the time that it transferred where waiting is known, else over its whole duration.
    """

    collective: str
    count: int
    total_duration: float
    avg_duration: float
    group_size: int | None = None
    bytes_total: int | None = None
    calls_with_size: int = 0
    algorithm_bandwidth_gb_s: float | None = None
    bus_bandwidth_gb_s: float | None = None
    exposed_us: float | None = None  # no computing beside it
    waiting_us: float | None = None  # for ranks that came later; None: the other ranks' traces are not here
    transfer_us: float | None = None
    examples: tuple[str, ...] = ()  # names of its kernels
    duration_unit: str = "us"


@dataclass(frozen=True)
class HostActivity:
    """What the host did meanwhile: innermost event of a driving thread."""

    name: str
    overlap_us: float


@dataclass(frozen=True)
class GapBeforeOp:
    """Idle time of a device before an op. The work resumes with `marker_op`; `payload_op` is the first op of weight after it."""

    name: str  # the payload
    count: int
    total_gap_duration: float
    max_gap_duration: float
    avg_gap_duration: float
    payload_op: str
    marker_op: str
    causes: dict[str, float] = field(default_factory=dict)  # microseconds of the gaps, by cause
    host_activity: tuple[HostActivity, ...] = ()
    duration_unit: str = "us"


@dataclass(frozen=True)
class RegionAggregate:
    """One path of nested names: scopes, annotations, modules. By device time of what was launched inside, else by host time."""

    path: str
    depth: int
    count: int
    inclusive_duration: float
    exclusive_duration: float
    basis: Literal["device", "host"] = "host"
    host_inclusive_us: float | None = None
    duration_unit: str = "us"


@dataclass(frozen=True)
class GapRegionContext:
    """In which region of the program a device waited before an op."""

    op_name: str
    region_path: str
    count: int
    total_gap_duration: float
    total_overlap_duration: float
    avg_gap_duration: float
    duration_unit: str = "us"


@dataclass(frozen=True)
class IdleCause:
    """Idle time with one cause."""

    cause: IdleCauseName
    total_us: float
    share_of_window: float
    count: int
    longest_us: float
    per_step_us: float | None


@dataclass(frozen=True)
class Idle:
    """Time in which devices did nothing useful: nothing ran, or only a collective that waited for another rank.

    The causes add up to `idle_us` + `waiting_us`, over all ranks and the same window as the breakdown.
    """

    window_us: float
    idle_us: float
    waiting_us: float | None  # in collectives, nothing computing beside; None: the other ranks are not here
    causes: tuple[IdleCause, ...]  # largest first


@dataclass(frozen=True)
class Overlap:
    """Communication beside computation. Exposed means that nothing computed; blocking that computing could have gone on without it."""

    compute_us: float
    communication_us: float
    overlapped_us: float
    exposed_us: float
    blocking_us: float | None  # None: launches are not recorded
    overlap_share: float | None  # of the communication


@dataclass(frozen=True)
class CopyStat:
    """Copies of one direction and kind of host memory."""

    direction: str
    pinned: bool | None
    count: int
    total_duration: float
    bytes_total: int | None
    bandwidth_gb_s: float | None
    exposed_us: float  # no kernel beside it
    duration_unit: str = "us"


@dataclass(frozen=True)
class Launches:
    """How kernels get to the device. Latency: from the call's begin to the kernel's on an idle stream; delay: on a busy one."""

    kernels: int
    kernels_with_launch: int
    kernels_per_step: float | None
    short_kernels_share: float | None  # shorter than 10 microseconds
    mean_kernel_us: float | None
    mean_call_us: float | None
    launch_latency: DurationStats
    queue_delay: DurationStats
    synchronizing_calls: int
    synchronizing_us: float


@dataclass(frozen=True)
class CudaGraphs:
    """Launches of captured graphs."""

    launches: int
    kernels: int
    kernels_per_launch: float | None
    device_share: float | None  # of the kernels' time


@dataclass(frozen=True)
class RankUse:
    """One rank. Shares are of its own window."""

    rank: int
    window_us: float
    compute_share: float
    communication_share: float
    copy_share: float
    host_share: float
    stall_share: float
    communication_us: float  # sum over its collectives
    waiting_us: float | None  # in them, for ranks that came later
    transfer_us: float | None
    waiting_share: float | None  # of its communication
    last_to_arrive: int | None  # collectives in which it came last
    caused_waiting_us: float | None  # of all other ranks, where it came last
    step_mean_us: float | None
    behind_us: float | None = None  # mean lateness where it came last


@dataclass(frozen=True)
class Straggler:
    """A rank that the others wait for."""

    rank: int
    last_to_arrive: int
    of_collectives: int
    caused_waiting_us: float
    share_of_waiting: float
    collectives: tuple[str, ...]  # the ones where it came last, in order, at most ten


@dataclass(frozen=True)
class Alignment:
    """How well the ranks could be laid side by side."""

    ranks: tuple[int, ...]
    missing_ranks: int | None
    collectives: int  # matched over all ranks
    unmatched: int
    clock: Literal["aligned", "shifted", "unknown"]  # shifted: laid over one another by the ends of the collectives
    end_spread_us: float | None  # median over collectives, after that
    waiting_us: float
    transfer_us: float
    first_arrival_spread_us: float | None  # of the collective with the largest spread
    stragglers: tuple[Straggler, ...]


@dataclass(frozen=True)
class OptimizationCandidate:
    """What to try next. `finding` and `knobs` are the same words that `trainflash diagnose` uses."""

    candidate_id: str
    title: str
    rationale: str
    evidence: tuple[str, ...]
    suggestions: tuple[str, ...]
    finding: Kind
    knobs: tuple[str, ...]
    share: float | None  # of the window; None: not a share of time
    ceiling_speedup: float | None  # if this cost were gone: arithmetic on the share, an upper bound
    figures: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class XprofKernel:
    """One row of xprof's kernel statistics."""

    name: str
    total_us: float
    occurrences: int


@dataclass(frozen=True)
class XprofTables:
    """What the optional `xprof` package says of the same XPlane file."""

    tables: tuple[str, ...]
    bottlenecks: tuple[str, ...]
    trace_events: int | None
    averages: dict[str, float] = field(default_factory=dict)  # of its overview, in milliseconds as their names say; 0 left out
    kernels: tuple[XprofKernel, ...] = ()


@dataclass(frozen=True)
class ProfileSummary:
    """`profile_summary.v1`: one or more ranks, one answer."""

    SCHEMA: ClassVar[str] = "profile_summary.v1"
    digest: str
    generated_at_utc: str
    source_path: str
    source_format: str
    run_metadata: RunMetadata
    trace_overview: TraceOverview
    trace_provenance: TraceProvenance
    step_time: StepTimeSummary
    time_breakdown: TimeBreakdown
    overlap: Overlap | None
    idle: Idle | None
    devices: tuple[DeviceUse, ...]
    ranks: tuple[RankUse, ...]
    alignment: Alignment | None
    hot_ops: tuple[HotOp, ...]
    host_ops: tuple[HotOp, ...]
    semantic_families: tuple[SemanticFamilyAggregate, ...]
    communication_ops: tuple[CommunicationOp, ...]
    gap_before_ops: tuple[GapBeforeOp, ...]
    hierarchical_regions: tuple[RegionAggregate, ...]
    gap_region_contexts: tuple[GapRegionContext, ...]
    copies: tuple[CopyStat, ...]
    launches: Launches | None
    cuda_graphs: CudaGraphs | None
    optimization_candidates: tuple[OptimizationCandidate, ...]
    xprof: XprofTables | None = None
    notes: tuple[str, ...] = ()
    schema_version: str = "profile_summary.v1"
