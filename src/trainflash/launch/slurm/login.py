"""The login side of a job: waits, shows what the job says, and ends with the job's own exit code."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from trainflash.errors import Inconclusive, UsageError
from trainflash.launch.slurm import queue
from trainflash.launch.slurm.job import PROGRESS, RESULT
from trainflash.launch.slurm.wanted import Wanted

LOOK_S = 0.5  # for new output, which costs one look at a file
ASK_EVERY_S = 3.0  # the scheduler, which serves everybody
LATE_S = 20.0  # a network file system may show a file so much later than it was written
HOPELESS_S = 10.0  # a reason that no waiting changes may stand there for a moment while the scheduler makes up its mind
_MEND = "another --slurm-partition, smaller --slurm-option, or a longer stay in the queue: --slurm-wait 6h"


def watch(
    job_id: str,
    folder: Path,
    wanted: Wanted,
    relay: Callable[[str], None],
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Wait for the end of the job. `relay` gets its progress as it was written, `say` one line whenever its state changes.

    Returns the command's exit code. Raises `UsageError` for a job that can never start, `Inconclusive` for one that did not start within
    `wanted.wait_s` or was ended without a result. The caller cancels the job when this raises.
    """
    follower = _Follower(folder / PROGRESS, relay)
    waiting_since, hopeless_since, over_since, asked = clock(), None, None, -ASK_EVERY_S
    seen = queue.JobState(queue.UNKNOWN)
    while True:
        follower.read()
        code = _result(folder / RESULT)
        if code is not None:
            follower.read()
            if code < 0:
                raise Inconclusive(f"job {job_id}: the command was ended by signal {-code}", "memory may have been too little; see `sacct`")
            return code
        if clock() - asked < ASK_EVERY_S:
            time.sleep(LOOK_S)
            continue
        asked, now = clock(), queue.state(job_id)
        _tell(job_id, seen, now, say)
        seen = now or seen
        if now is None or now.over:
            over_since = clock() if over_since is None else over_since
            if clock() - over_since > LATE_S:
                raise _without_result(job_id, seen, folder)
            continue
        over_since = None
        if not now.waits:
            waiting_since, hopeless_since = clock(), None
            continue
        hopeless_since = (hopeless_since or clock()) if now.hopeless else None
        if hopeless_since is not None and clock() - hopeless_since >= HOPELESS_S:
            raise UsageError(f"job {job_id} can never start: {now.reason}; it was cancelled", "see `sinfo` and `scontrol show partition`")
        if clock() - waiting_since > wanted.wait_s:
            why = f" ({now.reason})" if now.reason else ""
            raise Inconclusive(f"job {job_id} did not start within {_duration(wanted.wait_s)}{why}; it was cancelled", _MEND)


class _Follower:
    """Hands on what is added to a text file, whole lines only."""

    def __init__(self, path: Path, relay: Callable[[str], None]) -> None:
        self._path, self._relay, self._at = path, relay, 0

    def read(self) -> None:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                part = file.read()
        except OSError:
            return
        whole = part[: part.rfind(b"\n") + 1]
        self._at += len(whole)
        if whole:
            self._relay(whole.decode("utf-8", "replace"))


def _result(path: Path) -> int | None:
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["code"])
    except (OSError, ValueError, KeyError):
        return None


def _tell(job_id: str, before: queue.JobState, now: queue.JobState | None, say: Callable[[str], None]) -> None:
    if now is None or now.name == queue.UNKNOWN:
        return
    if now.restarts > before.restarts:
        say(f"job {job_id} was requeued; it goes on with what it had measured")
    if now.waits and (not before.waits or now.reason != before.reason):
        say(f"job {job_id} waits in the queue{f' ({now.reason})' if now.reason else ''}")
    if now.name == "RUNNING" and (before.name != "RUNNING" or now.nodes != before.nodes):
        say(f"job {job_id} runs on {now.nodes}")


def _without_result(job_id: str, seen: queue.JobState, folder: Path) -> Exception:
    how = f"{seen.name}{f', {seen.reason}' if seen.reason else ''}" if seen.name != queue.UNKNOWN else "the scheduler knows it no longer"
    message = f"job {job_id} ended without a result: {how}"
    mends = {
        "TIMEOUT": "give --slurm-time more; what was measured is kept, and the same command goes on with it",
        "CANCELLED": "what was measured is kept; the same command goes on with it",
        "OUT_OF_MEMORY": "ask for more memory: --slurm-option mem=32G",
    }
    mend = mends.get(seen.name, f"what it said lies in {folder.parent}; project and sandbox must lie on a file system that the nodes share")
    return Inconclusive(message, mend)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
