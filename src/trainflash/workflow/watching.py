"""Diagnose a running program without a restart, and the JSON document that it is answered with."""

from __future__ import annotations

import math
from typing import Any

from trainflash import live, redact
from trainflash.errors import UsageError
from trainflash.schema import Live, to_plain
from trainflash.workflow.session import OnProgress, silent

SECONDS = 10.0  # enough to tell hung from slow, and 200 stacks of each process
LEAST_SECONDS = 1.0
MOST_SECONDS = 3600.0


def watch(pid: int, seconds: float | None = None, on_progress: OnProgress = silent) -> Live:
    """Watch the program of `pid` for `seconds`. Nothing is written to it and nothing of it is stopped.

    Raises `UsageError`, one line, when there is nothing to watch or it ends meanwhile.
    """
    window = SECONDS if seconds is None else seconds
    if not (math.isfinite(window) and LEAST_SECONDS <= window <= MOST_SECONDS):
        raise UsageError(f"{window:g} is no number of seconds to watch", f"from {LEAST_SECONDS:g} to {MOST_SECONDS:g}")
    return live.diagnose(pid, window, on_progress, redact.argv)


def answer(found: Live) -> dict[str, Any]:
    """The document of `diagnose --pid`."""
    plain = to_plain(found)
    return {"schema": plain.pop("schema"), "status": "ok", **plain}
