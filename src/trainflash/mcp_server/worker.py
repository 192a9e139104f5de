"""One verb in a process of its own: started by `jobs`, stopped as by Ctrl-C when its standard input ends or says so.

It reads one line, the job; it writes lines of JSON, `progress` while it works and at last `answer`. Programs of the owner that it starts
are in its process tree and end with it, whatever became of the server.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

EVERY_S = 0.25  # between two lines of progress of one stage
_NEWLINE = b"\n"


def main() -> int:
    """Do the job that stands in the first line of standard input."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a server in the background may have it ignored, which is inherited
    wire = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not reach the wire
    job = json.loads(_first_line())
    threading.Thread(target=_stop_at_end, name="stop", daemon=True).start()
    from trainflash.mcp_server.roots import Roots
    from trainflash.mcp_server.verbs import answer

    say = _Progress(wire)
    try:
        document = answer(job["verb"], job["arguments"], Roots(tuple(Path(place) for place in job["roots"])), say)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        return 130
    _send(wire, {"answer": document})
    return 0


class _Progress:
    """The workflow's progress callback: a line when a stage begins, and a few a second while it lasts."""

    def __init__(self, wire: int) -> None:
        self._wire = wire
        self._label = ""
        self._said = 0.0

    def __call__(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        if label == self._label and now - self._said < EVERY_S:
            return
        self._label, self._said = label, now
        _send(self._wire, {"progress": [label, done, total]})


def _send(wire: int, message: dict[str, Any]) -> None:
    left = memoryview(json.dumps(message).encode("ascii") + _NEWLINE)
    try:
        while left:
            left = left[os.write(wire, left) :]
    except BrokenPipeError:  # the server is gone: end as if it had said so
        raise KeyboardInterrupt from None


def _first_line() -> bytes:
    read = b""
    while not read.endswith(_NEWLINE):
        part = os.read(0, 1 << 16)
        if not part:
            raise SystemExit(130)
        read += part
    return read


def _stop_at_end() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
