"""Where the time of a profile went: steps, classes of work, idling, devices and ranks; parts of `profiles.ProfileSummary`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BreakdownMode = Literal["exclusive_global", "exclusive_per_track", "inclusive"]
Basis = Literal["step_markers", "optimizer_steps", "device_steps", "repeated_calls", "xprof", "none"]
IdleCauseName = Literal[
    "data_loading", "launch_bound", "synchronization", "copy", "collective_wait", "no_work", "host_code", "queued", "startup", "unknown",
]  # fmt: skip


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
    """One step: from its mark to the next one; by the device, where the host runs ahead of it. Over ranks: the slowest rank's."""

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
    basis: Basis
    steps: tuple[Step, ...] = ()  # at most 200, in order
    data_loading_mean_us: float | None = None  # in a steady step of one device, while no operator ran (on the device, where there is one)


@dataclass(frozen=True)
class BreakdownPart:
    """One class of time."""

    total_duration: float
    share_of_total: float
    duration_unit: str = "us"


@dataclass(frozen=True)
class TimeBreakdown:
    """Where the time of the window went.

    `exclusive_global`: each instant of each device counted once, its work before the host's; the parts add up to `total_duration`.
    `exclusive_per_track`: the same for each stream by itself; they add up to the window times the streams.
    `inclusive`: sums of durations; concurrent events count several times, so the parts may exceed the window.
    `host`: no work of the device, and the host did something. `stall`: neither. Without a device `compute` is what the operators took.
    """

    duration_basis: BreakdownMode
    total_duration: float
    compute: BreakdownPart
    communication: BreakdownPart
    copy: BreakdownPart
    host: BreakdownPart
    stall: BreakdownPart
    other: BreakdownPart
    window_us: float  # of wall time, added up over the devices of all ranks
    window_start_us: float | None  # of the first rank, on the trace's clock
    tracks: int  # over which `total_duration` runs
    duration_unit: str = "us"


@dataclass(frozen=True)
class Overlap:
    """Communication beside computation of the same device.

    Exposed means that nothing computed; blocking that computing could have gone on without it.
    """

    compute_us: float
    communication_us: float
    overlapped_us: float
    exposed_us: float
    blocking_us: float | None  # None: launches are not recorded
    overlap_share: float | None  # of the communication


@dataclass(frozen=True)
class IdleCause:
    """Idle time with one cause."""

    cause: IdleCauseName
    total_us: float
    share_of_window: float
    count: int
    longest_us: float
    per_step_us: float | None  # of one device


@dataclass(frozen=True)
class Idle:
    """Time in which devices did nothing useful: nothing ran, or only a collective that waited for another rank.

    The causes add up to `idle_us` + `waiting_us`, over all devices and the same window as the breakdown.
    """

    window_us: float
    idle_us: float
    waiting_us: float | None  # in collectives, nothing computing beside; None: the other ranks are not here
    causes: tuple[IdleCause, ...]  # largest first


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
class RankUse:
    """One rank. Shares are of its own window, over all of its devices; sums are of what lies within it."""

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
    collectives: int  # matched over all ranks, and within their windows: sums and stragglers are of these
    unmatched: int  # in the whole trace
    clock: Literal["aligned", "shifted", "unknown"]  # shifted: laid over one another by the ends of the collectives
    end_spread_us: float | None  # median over collectives, after that
    waiting_us: float
    transfer_us: float
    first_arrival_spread_us: float | None  # of the collective with the largest spread
    stragglers: tuple[Straggler, ...]
