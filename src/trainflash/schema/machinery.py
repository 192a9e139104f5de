"""What a run ran on and beside: ranks and what they exchange, GPUs, the host, the device's time. Part of `summary.v1`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trainflash.schema.runs import Location


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
    operation: str = ""  # the costliest collective beside the reductions of a wrapper, by torch's name for it


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
