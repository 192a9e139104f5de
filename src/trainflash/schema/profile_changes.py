"""What is asked of profile summaries, and how two of them differ: `profile_query.v1`, `profile_compare.v1`, `profile_track.v1`,
`profile_history.v1`, `profile_bundle.v1`. `None` means not measured. History: v1, first version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

TrackStatus = Literal["pass", "warn", "fail", "inconclusive"]


@dataclass(frozen=True)
class ProfileAnswer:
    """The answer to one question about one summary. `said` is the same in a sentence or two."""

    SCHEMA: ClassVar[str] = "profile_query.v1"
    question: str
    query_type: str
    digest: str  # of the summary
    said: str
    results: tuple[dict[str, Any], ...]
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparedSide:
    """One side of a comparison."""

    digest: str
    trace_sha256: str | None
    source_path: str
    run_id: str | None
    artifact_ref: str | None
    steps: int  # steady ones


@dataclass(frozen=True)
class ProvenanceCheck:
    """Whether the two may be compared. `shared` names what they have in common, `differences` what should be equal and is not."""

    same_trace: bool
    shared: tuple[str, ...]
    differences: tuple[str, ...]
    notes: tuple[str, ...]  # other settings that changed, such as XLA_FLAGS


@dataclass(frozen=True)
class Delta:
    """One figure on both sides. `change` is after − before, `ratio` after ÷ before."""

    before: float | None
    after: float | None
    change: float | None
    ratio: float | None


@dataclass(frozen=True)
class StepTimeDelta:
    """Steady step time in microseconds. `speedup` is mean before ÷ mean after."""

    mean_us: Delta
    median_us: Delta
    p90_us: Delta
    speedup: float | None


@dataclass(frozen=True)
class StepClassDelta:
    """Steps of one class; None on a side that does not have it."""

    name: str
    median_us: Delta
    fraction_of_steady: Delta


@dataclass(frozen=True)
class ShareDelta:
    """One part of the breakdown: share of the window, and microseconds a step (or a rank, see `normalized_by`)."""

    part: str
    share: Delta
    per_unit_us: Delta


@dataclass(frozen=True)
class FamilyDelta:
    """One semantic family, normalised by the work done."""

    family: str
    per_unit_us: Delta
    share_of_total: Delta
    avg_us: Delta
    time_per_flop_proxy: Delta


@dataclass(frozen=True)
class OpDelta:
    """One op by its canonical name, exclusive microseconds a step (or a call, see `ops_normalized_by`).

    On a side that does not list it: the most that it may take there; 0 calls.
    """

    name: str
    per_unit_us: Delta
    count_per_unit: Delta


@dataclass(frozen=True)
class ProfileComparison:
    """`profile compare`: after against before. Without noise of its own: a trace compared with itself shows no change."""

    SCHEMA: ClassVar[str] = "profile_compare.v1"
    before: ComparedSide
    after: ComparedSide
    provenance: ProvenanceCheck
    changed: bool
    said: tuple[str, ...]
    normalized_by: Literal["step", "rank"]
    step_time: StepTimeDelta
    step_classes: tuple[StepClassDelta, ...]
    time_breakdown_share_delta: tuple[ShareDelta, ...]
    idle_causes: tuple[ShareDelta, ...]
    semantic_families: tuple[FamilyDelta, ...]
    regressed_ops: tuple[OpDelta, ...]
    improved_ops: tuple[OpDelta, ...]
    findings_gone: tuple[str, ...]  # optimization candidates of before that after no longer has
    findings_new: tuple[str, ...]
    findings_kept: tuple[str, ...]
    ops_normalized_by: Literal["step", "call"] = "step"


@dataclass(frozen=True)
class TrackLimits:
    """When a comparison fails or warns. The step's percentages are of before; shares are absolute."""

    max_step_median_regression_pct: float = 5.0
    max_step_p90_regression_pct: float = 10.0
    max_communication_share_regression_abs: float = 0.05
    max_stall_share_regression_abs: float = 0.05


@dataclass(frozen=True)
class ProfileAssessment:
    """`profile track`: one line of the history."""

    SCHEMA: ClassVar[str] = "profile_track.v1"
    recorded_at_utc: str
    label: str | None
    result: TrackStatus
    failures: tuple[str, ...]
    warnings: tuple[str, ...]
    metrics: dict[str, float | None]
    limits: TrackLimits
    before: ComparedSide
    after: ComparedSide
    comparison: ProfileComparison | None = None  # not kept in the history


@dataclass(frozen=True)
class Counted:
    """A sentence and how often it was said."""

    message: str
    count: int


@dataclass(frozen=True)
class TrendPoint:
    """One record of the history."""

    recorded_at_utc: str
    label: str | None
    result: TrackStatus
    step_median_before_us: float | None
    step_median_after_us: float | None
    step_median_regression_pct: float | None


@dataclass(frozen=True)
class ProfileHistory:
    """`profile history`: what came of every tracked comparison, oldest first."""

    SCHEMA: ClassVar[str] = "profile_history.v1"
    history_path: str
    num_records: int
    status_counts: dict[str, int]
    top_failures: tuple[Counted, ...]
    top_warnings: tuple[Counted, ...]
    trend: tuple[TrendPoint, ...]
    unreadable_lines: int
    step_median_change_pct: float | None  # from the first known median to the last


@dataclass(frozen=True)
class ProfileBundle:
    """`profile bundle`: the files of one comparison."""

    SCHEMA: ClassVar[str] = "profile_bundle.v1"
    output_dir: str
    files: dict[str, str]  # what → name within the directory
    result: TrackStatus
    said: tuple[str, ...]


@dataclass(frozen=True)
class ProfilePublication:
    """`profile publish`: what was, or would be, uploaded."""

    SCHEMA: ClassVar[str] = "profile_publish.v1"
    artifact_name: str
    artifact_type: str
    aliases: tuple[str, ...]
    files: tuple[str, ...]
    entity: str | None
    project: str | None
    mode: Literal["online", "offline", "dry-run"]
    metadata: dict[str, Any]
    reference: str | None = None  # where it can be found; None: not uploaded (yet)
