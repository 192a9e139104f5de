"""Phase events of a session → the document that `diagnose` answers with: same phases, same rules, same findings."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from trainflash import redact, stats, telemetry
from trainflash.diagnosis import diagnose
from trainflash.schema import Summary, Telemetry, to_plain
from trainflash.summary import steady_part, summarize
from trainflash.trace import Trace, marked
from trainflash.workflow.phases.sessions import RECORDED, PhaseSession, PhaseSessions

SLACK_NS = 60 * 10**9  # clocks of two programs on one machine, and a call's way
SNAPSHOT_S = 0.5  # between the two samples that rates are made of
NO_STEP = "no complete step was seen: a step is over when its Opt (else Bwd, else Fwd) has ended, or when the step number changes"


def summary(sessions: PhaseSessions, session: PhaseSession) -> dict[str, Any]:
    """The document of `get_trainflash_summary` and `stop_trainflash_session`. Raises nothing for what clients may have sent."""
    found = marked.load(sessions.events_path(session.id), label=session.label, device=_device(session))
    samples = sessions.samples(session.id)
    document = {
        "schema": "phase_summary.v1",
        "status": "ok",
        "session_id": session.id,
        "label": session.label,
        "metadata": session.metadata,
        "state": "running" if session.stopped_utc is None else "stopped",
        "started_utc": session.created_utc,
        "stopped_utc": session.stopped_utc,
        "phase_event_count": found.events,
        "ranks": list(found.ranks),
        "occurrences": {name: to_plain(stats.spread(lengths)) for name, lengths in found.durations_ms.items()},
        **(_diagnosed(session, found.trace, samples) if found.trace is not None else _undiagnosed(session, found)),
        "telemetry": to_plain(telemetry.derive(samples)) if samples else None,
        "telemetry_samples": len(samples),
    }
    document["notes"] = [*_faults(found.faults), *document["notes"]]
    document["hints"] = [finding["summary"] for finding in document["findings"]]
    if not samples:
        document["notes"].append(f"machine and GPUs were not sampled: at most {RECORDED} running sessions are")
    return document


def _diagnosed(session: PhaseSession, trace: Trace, samples: tuple[telemetry.Sample, ...]) -> dict[str, Any]:
    part = steady_part(trace.ranks[0])
    made = summarize(trace, run=session.id, project=session.label, telemetry=_during(session, samples, part.from_ns, part.to_ns))
    made = replace(made, startup_s=None, versions={}, activities=tuple(_told(each) for each in made.activities))
    plain = to_plain(diagnose(made))
    plain.pop("schema")
    return {**plain, "step_ms": to_plain(made.step_ms), "warmup_steps": made.warmup_steps, "rank_stats": _ranks(made)}


def _told(activity: Any) -> Any:
    """Forward calls inside an evaluation are known only where the client marked them."""
    return activity if activity.batches else replace(activity, batches=None)


def _ranks(made: Summary) -> list[dict[str, Any]]:
    return [
        {"rank": each.rank, "steps": each.steps, "step_ms": each.step_ms, "phases_ms": dict(each.phases_ms)} for each in made.rank_stats
    ]


def _undiagnosed(session: PhaseSession, found: marked.Marked) -> dict[str, Any]:
    wall = (found.to_ns - found.from_ns) / 1e9 if found.from_ns is not None and found.to_ns is not None else None
    return {
        "status": "inconclusive",
        "run": session.id,
        "steps": 0,
        "wall_s": wall,
        "timeline": "host",
        "coverage": None,
        "phases": {},
        "findings": [],
        "abstained": NO_STEP if found.events else "no event was sent yet",
        "notes": [],
        "sites": [],
        "together": None,
        "advice": ["send start and end of each phase with the number of the step, a few dozen steps at least"],
        "step_ms": None,
        "warmup_steps": None,
        "rank_stats": [],
    }


def _faults(faults: marked.Faults) -> list[str]:
    """What did not fit into the session's time line, in words."""
    said = [f"{count} starts of {name} never ended and are left out" for name, count in faults.never_ended.items()]
    said += [f"{count} ends of {name} had no start and are left out" for name, count in faults.never_started.items()]
    if faults.overlapping:
        said.append(f"{faults.overlapping} phases overlapped: the earlier one counts until the later one begins")
    if faults.late:
        said.append(f"{faults.late} events came out of order and were sorted by their time")
    if faults.far:
        said.append(f"{faults.far} events lie more than a day apart from the others and are left out")
    return said


def _during(session: PhaseSession, samples: tuple[telemetry.Sample, ...], from_ns: int, to_ns: int) -> Telemetry | None:
    """Telemetry of the steady part; None where the events' clock is neither this machine's wall clock nor its monotonic one."""
    now_wall, now_mono = time.time_ns(), time.monotonic_ns()
    since_mono = session.created_ns - (now_wall - now_mono)
    if session.created_ns - SLACK_NS <= from_ns and to_ns <= now_wall + SLACK_NS:
        shift = now_wall - now_mono
    elif since_mono - SLACK_NS <= from_ns and to_ns <= now_mono + SLACK_NS:
        shift = 0
    else:
        return None
    return telemetry.derive(samples, from_ns - shift, to_ns - shift)


def _device(session: PhaseSession) -> str:
    """What the client says it trains on; else the CPU, so that no device claim is made for a device that nobody named."""
    told = session.metadata.get("device")
    return redact.text(told) if isinstance(told, str) and told.startswith("cuda") else "cpu"


def snapshot() -> dict[str, Any]:
    """The document of `get_trainflash_system_snapshot`: machine and GPUs now, rates over half a second; disks are the machine's."""
    watch = telemetry.Watch(lambda: [])
    try:
        first, disks = watch.sample(), telemetry.disk_bytes()
        time.sleep(SNAPSHOT_S)
        measured = telemetry.derive((first, last := watch.sample()))
    finally:
        watch.close()
    plain = to_plain(measured) if measured else {"host": None, "gpus": []}
    if plain["host"] is not None:
        plain["host"] |= _disk_rates(disks, telemetry.disk_bytes(), (last.t_ns - first.t_ns) / 1e9)
    return {"schema": "system_snapshot.v1", "status": "ok", "at_unix_s": time.time(), "machine": telemetry.machine(), **plain}


def _disk_rates(before: tuple[int, int] | None, after: tuple[int, int] | None, seconds: float) -> dict[str, float | None]:
    if before is None or after is None or seconds <= 0:
        return {"disk_read_mb_s": None, "disk_write_mb_s": None}
    read, written = ((b - a) / seconds / 1e6 for a, b in zip(before, after, strict=True))
    return {"disk_read_mb_s": read, "disk_write_mb_s": written}


def measurable() -> dict[str, Any]:
    """Which counters this machine has: names of those that answer, and of those that do not."""
    watch = telemetry.Watch(lambda: [])
    try:
        sample = watch.sample()
    finally:
        watch.close()
    moved = telemetry.disk_bytes()
    host = {**to_plain(sample.host), "disk_bytes": sum(moved) if moved is not None else None}
    gpus = [{"name": gpu["name"], **_answering(gpu)} for gpu in to_plain(sample.gpus)]
    return {"host": _answering(host), "gpus": gpus}


def _answering(counters: dict[str, Any]) -> dict[str, list[str]]:
    skipped = ("index", "name", "ours", "reasons", "processes", "cpu_s", "read_bytes", "device_read_bytes", "device_written_bytes")
    names = [name for name in counters if name not in skipped]
    return {
        "measured": [name for name in names if counters[name] is not None],
        "not_measured": [name for name in names if counters[name] is None],
    }
