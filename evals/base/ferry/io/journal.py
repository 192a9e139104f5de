"""The journal of a run: one JSON line for each event."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


class Journal:
    """Appends to `journal.jsonl`; lines are written out every `flush_every` events and at the end."""

    def __init__(self, path: Path, flush_every: int = 50) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.flush_every = flush_every
        self._file = path.open("w", encoding="utf-8")
        self._pending = 0
        self._began = time.monotonic()

    def write(self, event: str, **figures: Any) -> None:
        line = {"event": event, "t": round(time.monotonic() - self._began, 3), **figures}
        self._file.write(json.dumps(line, sort_keys=True) + "\n")
        self._pending += 1
        if self._pending >= self.flush_every:
            self.flush()

    def flush(self) -> None:
        self._file.flush()
        self._pending = 0

    def close(self) -> None:
        self.flush()
        self._file.close()
