"""The launcher's end of the pacing FIFOs: says how many steps to train, and reads how long they took."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LOOK_S = 0.2  # how often to look whether the program still lives while it says nothing


class Reins:
    """The FIFOs `cmd` and `rep` in `directory`, made here. One command, then one report; see the probe's `pace` module."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        for name in ("cmd", "rep"):
            os.mkfifo(directory / name)
        (directory / "host").write_text(os.uname().nodename, encoding="utf-8")  # a FIFO does not reach another machine
        # Opened for reading too, so that opening does not wait for the program and a write cannot meet a closed pipe.
        self._command = os.open(directory / "cmd", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self._report = os.open(directory / "rep", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._pending = b""

    def tell(self, command: str) -> None:
        """Send `run K`, `quit` or `free`."""
        os.write(self._command, command.encode() + b"\n")

    def hear(self, timeout_s: float, alive: Callable[[], bool]) -> dict[str, Any] | None:
        """The next report; None when the time is over or the program is, and it said nothing."""
        deadline = time.monotonic() + timeout_s
        poll = select.poll()
        poll.register(self._report, select.POLLIN)
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            lives = alive()
            poll.poll(max(0.0, min(left, _LOOK_S)) * 1000)
            try:
                part = os.read(self._report, 1 << 16)
            except BlockingIOError:
                part = b""
            self._pending += part
            if part:
                continue
            if not lives or left <= 0:
                return None
            if not self.claimed() or poll.poll(0):
                time.sleep(_LOOK_S / 20)  # no writer yet, or the writer is gone: poll returns at once then
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line)

    def claimed(self) -> bool:
        """Whether a process that trains has taken the reins."""
        return (self.directory / "claim").exists()

    def others(self) -> bool:
        """Whether further processes train that are not paced."""
        return (self.directory / "pace-others").exists()

    def close(self) -> None:
        """Let go; a program that is still paced ends at its next boundary."""
        for fd in (self._command, self._report):
            if fd >= 0:
                os.close(fd)
        self._command = self._report = -1
