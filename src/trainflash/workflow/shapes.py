"""The shape of each JSON document: the artefact that it carries, and the keys beside it. For readers that want a schema, such as MCP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainflash.schema import (
    Approval,
    Brief,
    Carried,
    Compared,
    Diagnosis,
    Finding,
    GateEnv,
    GateEval,
    GateMetrics,
    GpuStat,
    HostStat,
    Live,
    Location,
    LogEntry,
    PhaseStat,
    Plan,
    Protection,
    Site,
    Speedup,
    Spread,
    Telemetry,
    TrainingChange,
    Verdict,
)
from trainflash.schema.authors import Attempt, Earned
from trainflash.schema.gate_changes import CompareResult, GateTrend
from trainflash.schema.health import Check
from trainflash.schema.profile_changes import ProfileAnswer, ProfileComparison
from trainflash.schema.profiles import ProfileSummary


@dataclass(frozen=True)
class ExperimentAnswer:
    """One experiment as answers list it."""

    n: int
    knob: str
    value: str
    location: Location | None
    diff_digest: str
    decision: str
    verdict: Verdict | None
    training: TrainingChange | None


@dataclass(frozen=True)
class Named:
    """One line of a list of names."""

    name: str
    what: str


@dataclass(frozen=True)
class RankAnswer:
    """One rank's mean step and phases."""

    rank: int
    steps: int
    step_ms: float
    phases_ms: dict[str, float]


@dataclass(frozen=True)
class Shape:
    """`artefact`: a dataclass whose fields are keys of the document; `beside`: further keys with their types."""

    artefact: type | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)


_SANDBOX = {
    "sandbox": str,
    "project": str,
    "worktree": str,
    "baseline": str,
    "base_ref": str,
    "protection": Protection,
    "protection_reason": str,
    "warnings": list[str],
}
_TRIED = {
    "experiments": list[ExperimentAnswer],
    "accepted": list[int],
    "speedup": Speedup | None,
    "spent_s": float,
    "stopped_because": str,
}
_SEARCHED = {"combined": Verdict | None, "attempts": list[Attempt], "ledger": list[Earned], "approve": str | None}

SHAPES: dict[str, Shape] = {
    "sandbox_create": Shape(None, _SANDBOX),
    "sandbox_status": Shape(
        None,
        {
            **_SANDBOX,
            "head": str | None,
            "dirty": list[str],
            "commits": list[list[str]],
            "drift": list[str],
            "experiments": list[ExperimentAnswer],
        },
    ),
    "sandbox_diff": Shape(None, {"diff": str}),
    "sandbox_discard": Shape(None, {"sandbox": str, "kept": str | None, "final": list[str]}),
    "diagnose": Shape(Diagnosis, {"sandbox": str, "protection": Protection | None}),
    "live": Shape(Live),
    "optimize_plan": Shape(Plan),
    "optimize_brief": Shape(Brief, {"markdown": str}),
    "optimize_try": Shape(None, _TRIED),
    "optimize_auto": Shape(
        None, {**_TRIED, "combined": Verdict | None, "attempts": list[Attempt], "ledger": list[Earned], "approve": str | None}
    ),
    "verify": Shape(
        Verdict, {"training": TrainingChange, "compared": Compared, "machine": dict[str, str], "carried": Carried, "bundle": str}
    ),
    "writeback": Shape(Approval, {"diff": str, "approvable": bool, "reason": str, "files": list[str], "digest": str}),
    "log": Shape(None, {"path": str, "entries": list[LogEntry]}),
    "log_note": Shape(None, {"path": str}),
    "report": Shape(None, {"report": str, "log": str}),
    "explain": Shape(
        None, {"name": str, "kind": str, "findings": list[Named], "knobs": list[Named] | list[str], "patterns": list[Named] | list[str]}
    ),
    "doctor": Shape(None, {"checks": list[Check]}),
    "profile_capture": Shape(None, {"run": str, "profile_dir": str, "traces": list[str], "steps": int, "protection": Protection | None}),
    "profile_summarize": Shape(ProfileSummary, {"output": str}),
    "profile_query": Shape(ProfileAnswer),
    "profile_report": Shape(None, {"digest": str, "output": str}),
    "profile_compare": Shape(ProfileComparison),
    "profile_export": Shape(None, {"run": str, "path": str, "slices": int, "marks": int, "counters": int, "bytes": int}),
    "gate_env": Shape(GateEnv),
    "gate_bench": Shape(GateMetrics, {"metrics": str}),
    "gate_eval": Shape(GateEval, {"eval": str}),
    "gate_compare": Shape(CompareResult),
    "gate_history": Shape(GateTrend),
    "capabilities": Shape(
        None,
        {
            "version": str,
            "phases": list[str],
            "events": list[str],
            "event_fields": list[str],
            "limits": dict[str, int],
            "telemetry": dict[str, Any],
            "roots": list[str],
            "findings": list[str],
            "without_gpu": bool,
        },
    ),
    "system_snapshot": Shape(
        None, {"at_unix_s": float, "machine": dict[str, str], "interval_s": float, "host": HostStat | None, "gpus": list[GpuStat]}
    ),
    "session_start": Shape(None, {"session_id": str, "label": str, "started_utc": str}),
    "phase_event": Shape(None, {"session_id": str, "phase_event_count": int}),
    "phase_trace": Shape(None, {"session_id": str, "imported_event_count": int, "phase_event_count": int}),
    "phase_summary": Shape(
        None,
        {
            "session_id": str,
            "label": str,
            "metadata": dict[str, Any],
            "state": str,
            "started_utc": str,
            "stopped_utc": str | None,
            "phase_event_count": int,
            "ranks": list[int],
            "occurrences": dict[str, Spread],
            "run": str,
            "steps": int,
            "wall_s": float | None,
            "timeline": str,
            "coverage": float | None,
            "phases": dict[str, PhaseStat],
            "findings": list[Finding],
            "hints": list[str],
            "abstained": str | None,
            "notes": list[str],
            "sites": list[Site],
            "advice": list[str],
            "step_ms": Spread | None,
            "warmup_steps": int | None,
            "rank_stats": list[RankAnswer],
            "telemetry": Telemetry | None,
            "telemetry_samples": int,
        },
    ),
}
