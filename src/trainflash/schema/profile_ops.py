"""What ran in a profile: operators, collectives, copies, launches, gaps before them, regions; parts of `profiles.ProfileSummary`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trainflash.schema.profile_times import DurationStats

MOST_OP_TOTALS = 200


@dataclass(frozen=True)
class OpTotal:
    """All events whose names differ by template arguments and running numbers only: what two summaries compare."""

    canonical_name: str
    count: int
    exclusive_duration: float
    duration_unit: str = "us"


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
    calls_with_flops: int = 0
    bytes_proxy_per_call: float | None = None  # what the operators behind it read and write at least
    calls_with_bytes: int = 0
    launched_by: str | None = None  # host operator behind most of its time
    family: str = "other"
    share_of_total: float | None = None  # of the sum of all such durations
    slowest_rank: int | None = None  # the rank with most of it, where there are several
    slowest_rank_duration: float | None = None
    duration_unit: str = "us"


@dataclass(frozen=True)
class SourceSite:
    """A function of the owner's, in a trace with Python frames: itself, what libraries do for it, and the backward of what it computed."""

    file: str
    line: int  # its first
    function: str
    host_duration: float  # of the threads that drive the devices, within the window
    host_share: float | None  # of the window, ranks added up
    backward_duration: float  # of `host_duration`
    device_duration: float  # of what was launched in it
    device_share: float | None = None  # of all device time; None: no device
    hottest_call: str | None = None  # the library's function that takes most of it by itself, as the tracer names it
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
class CopyStat:
    """Copies of one direction and kind of host memory."""

    direction: str
    pinned: bool | None
    count: int
    total_duration: float
    bytes_total: int | None
    bandwidth_gb_s: float | None
    exposed_us: float  # no kernel that computes beside it
    hidden_us: float = 0.0  # the instants at which one does
    recurs: bool | None = None  # in more than one step, or all over a window without steps; None: a single step tells nothing
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
