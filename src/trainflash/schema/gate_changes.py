"""Whether a change may pass the gate, and what the gate remembers: `gate_compare.v1`, `gate_baseline.v1`, `gate_history.v1`,
`gate_trend.v1`. `None` means not measured. History: v1, first version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from trainflash.schema.gate import GateEval, GateMetrics
from trainflash.schema.runs import Location

GateResult = Literal["pass", "warn", "fail", "inconclusive"]


@dataclass(frozen=True)
class GateCheck:
    """One figure against one tolerance. `worse` is how much worse it got, in `unit`; below 0 it got better.

    `low` and `high` are the interval of `worse`; both None: the figure has no noise (or none that was measured). `skipped`: neither side
    has the figure, or another one stands for it.
    """

    name: str  # tokens_per_sec_p50, step_time_p50, memory_peak, perplexity, probe NAME, metric NAME, loss_slope, …
    gate: Literal["performance", "quality", "stability"]
    action: Literal["fail", "warn"]  # what it does when it is beyond its limit
    result: Literal["pass", "warn", "fail", "inconclusive", "skipped"]
    unit: Literal["percent", "points", "a step"]
    baseline: float | None
    current: float | None
    worse: float | None
    low: float | None
    high: float | None
    limit: float
    said: str


@dataclass(frozen=True)
class ComparedRun:
    """One side of a comparison."""

    commit: str | None
    machine_profile: str | None
    source: str  # file or commit that it came from
    repeats: int | None  # runs or starts that its figures rest on


@dataclass(frozen=True)
class SlowerPart:
    """A phase, and the line in it, that takes more of a step than before. Milliseconds a step; None: not there, or not seen."""

    phase: str
    baseline_ms: float | None
    current_ms: float
    location: Location | None = None
    line_baseline_ms: float | None = None
    line_current_ms: float | None = None


@dataclass(frozen=True)
class CompareResult:
    """`gate compare`: may this change pass? `compared` False: there was nothing that it may be compared with, `reasons` say why."""

    SCHEMA: ClassVar[str] = "gate_compare.v1"
    result: GateResult
    mode: Literal["stored", "paired"]
    compared: bool
    machine_profile: str | None
    baseline: ComparedRun
    current: ComparedRun
    checks: tuple[GateCheck, ...]
    reasons: tuple[str, ...] = ()  # why it is not a pass
    slower: tuple[SlowerPart, ...] = ()  # largest first
    notes: tuple[str, ...] = ()
    mend: str = ""
    spent_s: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the change may go on: pass or warn."""
        return self.result in ("pass", "warn")


@dataclass(frozen=True)
class Provenance:
    """Where a baseline came from, and who let it become one."""

    commit: str | None
    branch: str | None
    by: Literal["main branch", "maintainer", "library call"]
    at_utc: str
    trainflash: str


@dataclass(frozen=True)
class GateBaseline:
    """`bench/baselines/<machine_profile>.{metrics,eval}.json`. `seals`: a digest of each field, so that an edit by hand is named."""

    SCHEMA: ClassVar[str] = "gate_baseline.v1"
    kind: Literal["metrics", "eval"]
    document: str  # schema of the measured document, e.g. "gate_metrics.v1"
    machine_profile: str
    provenance: Provenance
    seals: dict[str, str]
    metrics: GateMetrics | None = None
    eval: GateEval | None = None


@dataclass(frozen=True)
class GateRecord:
    """One line of the history: what one commit measured on one machine profile."""

    SCHEMA: ClassVar[str] = "gate_history.v1"
    at_utc: str
    commit: str | None
    machine_profile: str
    result: GateResult | None  # None: measured, not compared
    figures: dict[str, float]  # step_time_p50_ms, tokens_per_sec_p50, perplexity, …: those that were measured
    label: str | None = None


@dataclass(frozen=True)
class HistoryPoint:
    """One commit of a series. `level` is that of its segment: the mean between two change points."""

    at_utc: str
    commit: str | None
    label: str | None
    value: float
    level: float
    result: GateResult | None = None


@dataclass(frozen=True)
class ChangePoint:
    """Where a figure changed for good: the first commit of the new level. `worse_pct` below 0: it got better."""

    index: int
    commit: str | None
    label: str | None
    before: float
    after: float
    worse_pct: float


@dataclass(frozen=True)
class GateSeries:
    """One figure over time. `worse_pct` is from its best level so far to the last one."""

    figure: str
    better: Literal["lower", "higher"]
    points: tuple[HistoryPoint, ...]
    changes: tuple[ChangePoint, ...]
    noise_pct: float | None  # of one point; None: too few points
    worse_pct: float
    limit_pct: float
    result: Literal["pass", "warn", "inconclusive"]
    said: str


@dataclass(frozen=True)
class GateTrend:
    """`gate history`: figures over time on one machine profile, with the commits at which they changed."""

    SCHEMA: ClassVar[str] = "gate_trend.v1"
    path: str
    machine_profile: str
    records: int
    series: tuple[GateSeries, ...]
    result: Literal["pass", "warn", "inconclusive"]
    said: tuple[str, ...]
    unreadable_lines: int = 0
    others: dict[str, int] = field(default_factory=dict)  # records of other machine profiles, which are not shown


@dataclass(frozen=True)
class GateValidation:
    """`gate validate`: the three promises of the gate, tried on this machine."""

    SCHEMA: ClassVar[str] = "gate_validate.v1"
    result: GateResult
    checks: tuple[ValidationCheck, ...]


@dataclass(frozen=True)
class ValidationCheck:
    """One promise. `ok` None: it could not be tried, `evidence` says why."""

    name: str
    ok: bool | None
    evidence: str
