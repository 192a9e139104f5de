"""Sessions of phase events that a client sends: kept on disk from the first event on, judged by the same rules as `diagnose`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from trainflash import redact, sandbox, telemetry
from trainflash.errors import UsageError
from trainflash.schema import read_document, write_document
from trainflash.trace import marked
from trainflash.workflow.phases import events as phase_events
from trainflash.workflow.session import now_utc

state_folder = sandbox.state_folder  # where trainflash keeps what it may write without asking

FOLDER = "phase-sessions"  # in the state folder
MOST_EVENTS = 2_000_000  # of one session: 32 MB on disk, read at once for a summary
MOST_METADATA = 10_000  # characters of JSON
MOST_LABEL = 200
RECORDED = 8  # sessions whose machine is sampled at the same time
IDLE_S = 900.0  # a session without events for so long is no longer sampled; the next event begins it again
CHUNK = 4096  # records written at once


@dataclass(frozen=True)
class PhaseSession:
    """`session.json` of one session. `created_ns`: wall clock, to tell events of this machine and time from others."""

    SCHEMA: ClassVar[str] = "phase_session.v1"
    id: str
    label: str
    created_utc: str
    created_ns: int
    metadata: dict[str, Any] = field(default_factory=dict)
    stopped_utc: str | None = None


class PhaseSessions:
    """All sessions in one folder. Any number of servers may share it; a call may come from any thread."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or sandbox.state_folder() / FOLDER
        self._recorders: dict[str, telemetry.Recorder] = {}
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def start(self, label: str, metadata: Mapping[str, Any] | None = None) -> PhaseSession:
        """A new session, whose machine is sampled from now on. Raises `UsageError` for a label or metadata that is too long."""
        if not label.strip() or len(label) > MOST_LABEL:
            raise UsageError(f"a label has 1 to {MOST_LABEL} characters", "name what is trained, such as resnet18-cifar10")
        try:
            kept = _without_secrets(json.loads(json.dumps(dict(metadata or {}), allow_nan=False)))
        except (TypeError, ValueError, RecursionError):
            raise UsageError("metadata is not JSON", "give an object of numbers, strings and lists") from None
        if len(json.dumps(kept)) > MOST_METADATA:
            raise UsageError(f"metadata is longer than {MOST_METADATA} characters", "name what matters, and where the rest lies")
        made = PhaseSession(uuid.uuid4().hex, redact.text(label), now_utc(), time.time_ns(), kept)
        self._directory(made.id).mkdir(mode=0o700, parents=True)
        write_document(self._directory(made.id) / "session.json", made)
        pid = kept.get("pid")
        if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0:  # the recorder watches processes announced like this
            (self._directory(made.id) / f"process-{pid}.json").write_text(json.dumps({"pid": pid}))
        self._sample(made.id)
        return made

    def get(self, session_id: str) -> PhaseSession:
        """Raises `UsageError` when there is no such session."""
        path = self._directory(session_id) / "session.json"
        if not path.is_file():
            raise UsageError(f"there is no session {session_id!r}", "start one with start_trainflash_session")
        return read_document(PhaseSession, path)

    def events_path(self, session_id: str) -> Path:
        return self._directory(session_id) / "events.bin"

    def samples(self, session_id: str) -> tuple[telemetry.Sample, ...]:
        """What machine and devices did while the session was sampled."""
        return telemetry.read(self._directory(session_id) / telemetry.FILE)

    def record(self, session_id: str, event: Mapping[str, Any]) -> int:
        """Keep one event; returns how many the session has."""
        return self._append(session_id, phase_events.packed(event))

    def ingest(self, session_id: str, path: Path | None, events: Iterable[Any] | None) -> tuple[int, int]:
        """Keep a file of JSON lines and inline events: all, or none when one is refused. Returns how many, and how many in all."""
        self._running(session_id)
        waiting = self._directory(session_id) / f".incoming-{uuid.uuid4().hex}"
        try:
            with waiting.open("wb") as file:
                for records in (phase_events.from_file(path) if path else (), phase_events.from_list(events or ())):
                    for record in records:
                        file.write(record)
                        if file.tell() > MOST_EVENTS * marked.LAYOUT.size:
                            raise _too_many()
            size = waiting.stat().st_size
            return size // marked.LAYOUT.size, self._append(session_id, waiting.read_bytes())
        finally:
            waiting.unlink(missing_ok=True)

    def stop(self, session_id: str) -> PhaseSession:
        """No more events; the machine is no longer sampled. The same again for a session that is stopped."""
        session = self.get(session_id)
        self._rest(session_id)
        if session.stopped_utc is None:
            session = replace(session, stopped_utc=now_utc())
            write_document(self._directory(session_id) / "session.json", session)
        return session

    def close(self) -> None:
        """The server ends: sampling ends, sessions stay."""
        with self._lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        for session_id in list(self._recorders):
            self._rest(session_id)

    def _directory(self, session_id: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{32}", session_id):
            raise UsageError("that is no session id", "use the session_id that start_trainflash_session returned")
        return self.folder / session_id

    def _running(self, session_id: str) -> PhaseSession:
        session = self.get(session_id)
        if session.stopped_utc is not None:
            raise UsageError(f"session {session_id} was stopped at {session.stopped_utc}", "start another one")
        return session

    def _append(self, session_id: str, records: bytes) -> int:
        self._running(session_id)
        size = marked.LAYOUT.size
        handle = os.open(self.events_path(session_id), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            whole = os.fstat(handle).st_size // size * size  # a server that was killed may have left part of a record
            if whole + len(records) > MOST_EVENTS * size:
                raise _too_many()
            at = whole
            with memoryview(records) as left:
                while at < whole + len(records):
                    at += os.pwrite(handle, left[at - whole : at - whole + CHUNK * size], at)
            os.ftruncate(handle, at)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, whole)
            raise
        finally:
            os.close(handle)
        self._sample(session_id)
        return at // size

    def _sample(self, session_id: str) -> None:
        """See that the machine is sampled for a session that is used."""
        self._used[session_id] = time.monotonic()
        if session_id in self._recorders:
            return
        with self._lock:
            if session_id in self._recorders or len(self._recorders) >= RECORDED:
                return
            recorder = telemetry.Recorder(self._directory(session_id))
            recorder.start()
            self._recorders[session_id] = recorder
            self._watch()

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(IDLE_S / 4, self._end_idle)
            self._timer.daemon = True
            self._timer.start()

    def _end_idle(self) -> None:
        for session_id, used in list(self._used.items()):
            if time.monotonic() - used > IDLE_S:
                self._rest(session_id)
        with self._lock:
            self._timer = None
            if self._recorders:
                self._watch()

    def _rest(self, session_id: str) -> None:
        with self._lock:
            recorder = self._recorders.pop(session_id, None)
            self._used.pop(session_id, None)
        if recorder is not None:
            recorder.stop()


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        texts = {name: inner for name, inner in value.items() if isinstance(inner, str)}
        return {name: _without_secrets(inner) for name, inner in value.items()} | redact.environment(texts)
    if isinstance(value, list):
        return [_without_secrets(inner) for inner in value]
    return redact.text(value) if isinstance(value, str) else value


def _too_many() -> UsageError:
    return UsageError(f"a session holds at most {MOST_EVENTS} events", "stop it and start another one, or send every tenth step")
