"""Ranks that never start: the others wait for them at the rendezvous until its time-out, which may be half an hour."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

LOOK_EVERY_S = 2.0
# Between the first rank's import of torch and the last one's: a cold network file system takes minutes for it, a healthy one seconds.
PATIENCE_S = 300.0
_SHOWN = 8


class Absent:
    """Looks now and then, until the first training step is seen."""

    def __init__(self, run_dir: Path, patience_s: float = PATIENCE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._run_dir, self._patience_s, self._clock = run_dir, patience_s, clock
        self._next_s = 0.0
        self._first_s: float | None = None

    def for_long(self) -> bool:
        """Look; True when some ranks have been waited for too long. Cheap enough to be called in a waiting loop."""
        now = self._clock()
        if now < self._next_s:
            return False
        self._next_s = now + LOOK_EVERY_S
        if not missing(self._run_dir):
            self._first_s = None
            return False
        self._first_s = now if self._first_s is None else self._first_s
        return now - self._first_s > self._patience_s


def missing(run_dir: Path) -> str:
    """Which ranks have not imported torch though others of the same job have, as a sentence; "" where all have, or nobody tells."""
    seen: dict[int, str] = {}
    expected = 0
    with contextlib.suppress(OSError):
        for line in (run_dir / "notice.jsonl").read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                told = json.loads(line)
                if told["notice"].startswith("torch ") and told["world_size"] > 1:
                    expected = max(expected, int(told["world_size"]))
                    seen[int(told["rank"])] = str(told["host"])
    absent = [rank for rank in range(expected) if rank not in seen]
    if not absent:
        return ""
    shown = ", ".join(str(rank) for rank in absent[:_SHOWN]) + (f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else "")
    where = ", ".join(sorted(set(seen.values())))
    return f"of {expected} ranks only {len(seen)} started ({where}): {'rank' if len(absent) == 1 else 'ranks'} {shown} never imported torch"
