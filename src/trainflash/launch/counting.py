"""How many steps a running program has completed, read so cheaply that a waiting loop may ask every few milliseconds."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from pathlib import Path

_MAGIC = b"TFEVENT1"


def steps_so_far(run_dir: Path) -> int:
    """Steps completed by now, of the training process that has fewest; 0 before the first. Reads the heads of the events files."""
    counts = []
    for path in run_dir.glob("events-*.bin"):
        with contextlib.suppress(OSError), path.open("rb") as events:
            head = events.read(16)
            if len(head) == 16 and head.startswith(_MAGIC):
                counts.append(struct.unpack("<8xQ", head)[0])
    return min(filter(None, counts), default=0)


class StepCounter:
    """Steps of the rank that has fewest, 0 until all ranks of this machine have begun to train."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._files: dict[str, int] = {}
        self.ranks = 1

    def read(self) -> int:
        if len(self._files) < self.ranks:
            self._look()
        counts = []
        for fd in self._files.values():
            words = os.pread(fd, 16, 0)
            counts.append(struct.unpack("<8xQ", words)[0] if len(words) == 16 else 0)
        return min(counts, default=0) if len(self._files) >= self.ranks else 0

    def close(self) -> None:
        for fd in self._files.values():
            os.close(fd)
        self._files = {}

    def _look(self) -> None:
        for path in self._run_dir.glob("process-*.json"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                header = json.loads(path.read_text(encoding="utf-8"))
                if header.get("role") != "main" or path.name in self._files:
                    continue
                self.ranks = max(self.ranks, int(header.get("world_size") or 1))
                self._files[path.name] = os.open(self._run_dir / header["events"], os.O_RDONLY | os.O_CLOEXEC)
