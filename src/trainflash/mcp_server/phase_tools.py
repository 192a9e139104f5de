"""The seven tools of phase sessions: a training program, or an assistant beside it, sends events and gets the findings of `diagnose`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult

from trainflash import __version__
from trainflash.mcp_server.roots import Roots
from trainflash.mcp_server.tools import add, result
from trainflash.mcp_server.verbs import guarded
from trainflash.workflow.explaining import everything
from trainflash.workflow.phases import events as phase_events
from trainflash.workflow.phases import sessions as phase_sessions
from trainflash.workflow.phases import summary as phase_summary
from trainflash.workflow.phases.sessions import PhaseSessions

AT_ONCE = frozenset({"record_trainflash_phase_event"})  # takes 40 µs; handing it to a thread takes longer, and many come
SessionId = Annotated[str, "The session_id that start_trainflash_session returned."]


class PhaseTools:
    """The functions behind the tools; each returns a document."""

    def __init__(self, sessions: PhaseSessions, roots: Roots) -> None:
        self.sessions = sessions
        self.roots = roots

    def capabilities(self) -> dict[str, Any]:
        """What can be measured on this machine, which phases and events are understood, limits, and the paths that may be named."""
        counters = phase_summary.measurable()
        return {
            "schema": "capabilities.v1",
            "status": "ok",
            "version": __version__,
            "phases": list(phase_events.PHASES),
            "events": ["start", "end"],
            "event_fields": list(phase_events.KEYS),
            "limits": {
                "events_per_session": phase_sessions.MOST_EVENTS,
                "ranks": phase_events.MOST_RANK + 1,
                "line_bytes": phase_events.LINE_BYTES,
                "sampled_sessions": phase_sessions.RECORDED,
            },
            "telemetry": counters,
            "without_gpu": not counters["gpus"],
            "roots": [str(place) for place in self.roots.places],
            "findings": [finding["name"] for finding in everything()["findings"]],
        }

    def snapshot(self) -> dict[str, Any]:
        """The machine now: by NVML GPU use, memory, PCIe (rx is host to device), power, temperature; CPU, memory, disk, network.

        Rates are over half a second; null means not measurable here, never zero.
        """
        return phase_summary.snapshot()

    def start(
        self,
        label: Annotated[str, "What is trained, such as resnet18-cifar10."],
        metadata: Annotated[
            dict[str, Any] | None,
            "Anything to keep with it. `device` (such as cuda:0) says what it trains on, `pid` whose CPU and input/output to watch.",
        ] = None,
    ) -> dict[str, Any]:
        """Start a session of phase events, and sampling of machine and GPUs beside it. It survives a restart of the server."""
        made = self.sessions.start(label, metadata)
        return {
            "schema": "session_start.v1",
            "status": "ok",
            "session_id": made.id,
            "label": made.label,
            "started_utc": made.created_utc,
        }

    def record(
        self,
        session_id: SessionId,
        phase: Annotated[str, "Data, H2D, Fwd, Bwd, Opt, Eval, Ckpt or Log; any other is refused."],
        event: Annotated[str, "start or end."],
        step: Annotated[int | None, "Number of the training step; without it a step ends with its optimizer update."] = None,
        ts: Annotated[float | None, "Seconds, such as time.time(); now, if left out."] = None,
        rank: Annotated[int | None, "Rank of the training process. Default: 0."] = None,
        metadata: Annotated[dict[str, Any] | None, "`rank` may stand here too; nothing else is read."] = None,
    ) -> dict[str, Any]:
        """Record one event: a phase starts or ends. Many are better sent at once with ingest_trainflash_phase_trace."""
        event_ = {"phase": phase, "event": event, "step": step, "ts": ts, "rank": rank, "metadata": metadata}
        count = self.sessions.record(session_id, event_)
        return {"schema": "phase_event.v1", "status": "ok", "session_id": session_id, "phase_event_count": count}

    def ingest(
        self,
        session_id: SessionId,
        trace_path: Annotated[
            str | None, "A file below the server's roots, one event {phase, event, step, ts, rank} a line, as JSON."
        ] = None,
        events: Annotated[list[dict[str, Any]] | None, "The same, inline."] = None,
    ) -> dict[str, Any]:
        """Add many events to a session, from a file or inline: all of them, or none when one is refused."""
        path = self.roots.inside(trace_path, also_state=True) if trace_path is not None else None
        imported, count = self.sessions.ingest(session_id, path, events)
        return {
            "schema": "phase_trace.v1",
            "status": "ok",
            "session_id": session_id,
            "imported_event_count": imported,
            "phase_event_count": count,
        }

    def summary(self, session_id: SessionId) -> dict[str, Any]:
        """Where the session's time goes so far: shares, means and tails by phase, coverage, ranks, telemetry, and hints.

        The hints are the findings of `diagnose`: same rules, the first is the bottleneck.
        """
        return phase_summary.summary(self.sessions, self.sessions.get(session_id))

    def stop(self, session_id: SessionId) -> dict[str, Any]:
        """Stop a session and return its final summary; no more events are taken."""
        return phase_summary.summary(self.sessions, self.sessions.stop(session_id))


def register(server: MCPServer, sessions: PhaseSessions, roots: Roots) -> dict[str, str]:
    """Add the seven tools; returns the name of each one's document."""
    tools = PhaseTools(sessions, roots)
    table: tuple[tuple[str, str, Callable[..., dict[str, Any]], str, bool], ...] = (
        ("get_trainflash_capabilities", "What can be measured here", tools.capabilities, "capabilities", True),
        ("get_trainflash_system_snapshot", "The machine now", tools.snapshot, "system_snapshot", True),
        ("start_trainflash_session", "Start a session of phase events", tools.start, "session_start", False),
        ("record_trainflash_phase_event", "Record one phase event", tools.record, "phase_event", False),
        ("ingest_trainflash_phase_trace", "Add many phase events", tools.ingest, "phase_trace", False),
        ("get_trainflash_summary", "Where the session's time goes", tools.summary, "phase_summary", True),
        ("stop_trainflash_session", "Stop a session", tools.stop, "phase_summary", False),
    )
    for name, title, function, _, reads_only in table:
        add(server, function, name, title, _calling(name, function), reads_only=reads_only, skip=0)
    return {name: shape for name, _, _, shape, _ in table}


def _calling(name: str, function: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    async def call(*, context: Context, **arguments: Any) -> CallToolResult:
        work = partial(guarded, name, partial(function, **arguments))
        return result(work() if name in AT_ONCE else await anyio.to_thread.run_sync(work))

    return call
