"""What a profiler's trace says, small enough to read: `profile_summary.v1`.

A superset of the schema that marin-community's profiling tools write under the same name: fields of the same meaning have the same name.
Those names carry no unit, so each class that has one says it in `duration_unit` ("us": microseconds, to the nanosecond); all other
durations end in their unit. Shares are from 0 to 1. `None` means not measured or not knowable from this trace, never 0.

`digest` is the sha256 of the document without itself, `generated_at_utc`, `source_path`, `run_metadata` and `xprof` (whose
tables depend on what is installed): equal traces give equal digests.

Its parts stand in `profile_times` and `profile_ops`.

History: v1, first version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from trainflash.schema.findings import Evidence, Kind
from trainflash.schema.profile_memory import MemoryUse
from trainflash.schema.profile_ops import (
    CommunicationOp,
    CopyStat,
    CudaGraphs,
    GapBeforeOp,
    GapRegionContext,
    HotOp,
    Launches,
    OpTotal,
    RegionAggregate,
    SemanticFamilyAggregate,
    SourceSite,
)
from trainflash.schema.profile_times import Alignment, DeviceUse, Idle, Overlap, RankUse, StepTimeSummary, TimeBreakdown

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
    captured_launches: int = 0  # into a graph, rather than run; 0 where most launches ran


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
    source_sites: tuple[SourceSite, ...] = ()  # of traces with Python frames
    op_totals: tuple[OpTotal, ...] = ()  # costliest first, at most 200; of the device where there is one, else of the host
    memory: tuple[MemoryUse, ...] = ()  # of traces with allocator events
    schema_version: str = "profile_summary.v1"
