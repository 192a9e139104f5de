"""Python processes that use torch although the probe could not enter them: `python -I` or `-E`, or a PYTHONPATH that was reset.

Without this a run without training and a training that nobody saw would look the same.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path

from trainflash import redact
from trainflash.launch import supervise

LOOK_EVERY_S = 1.0
# CPU seconds of the stranger, so that a busy machine on which an import takes minutes accuses nobody
IMPORT_CPU_S = 5.0  # torch's libraries are mapped before its import ends and the probe says that it is in; an import takes 1 to 4
ALONE_CPU_S = 20.0  # so long may others still begin to train; then it is the stranger who trains, and no step will ever be seen


class Strangers:
    """Looks now and then, until the first training step is seen; each stranger becomes one line of `notice.jsonl`."""

    def __init__(self, tree: int, run_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._tree = tree
        self._notices = run_dir / "notice.jsonl"
        self._clock = clock
        self._next_s = 0.0
        self._first_cpu_s: dict[int, float] = {}  # of each process that uses torch, when it was first seen to
        self._told: set[int] = set()

    def train_alone(self) -> bool:
        """Look for strangers; True when one has computed for long. Cheap enough to be called in a waiting loop."""
        now = self._clock()
        if now < self._next_s:
            return False
        self._next_s = now + LOOK_EVERY_S
        known, alone = self._announced(), False
        for pid in supervise.living(self._tree):
            stat = supervise.process_stat(pid)
            if pid in known or stat is None or not (pid in self._first_cpu_s or _uses_torch(pid)):
                continue
            used_s = stat[2] - self._first_cpu_s.setdefault(pid, stat[2])
            if used_s >= IMPORT_CPU_S:
                self._tell(pid)
            alone |= used_s >= IMPORT_CPU_S + ALONE_CPU_S
        return alone

    def _announced(self) -> set[int]:
        """Processes in which the probe runs, and those forked from one."""
        found = set()
        with contextlib.suppress(OSError):
            for line in self._notices.read_text(errors="replace").splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    found.add(int(json.loads(line)["pid"]))
        found -= self._told  # these lines are our own
        tree = supervise.descendants(self._tree)
        return found | {pid for pid in tree if _has_ancestor(pid, found, tree) and _forked(pid, tree[pid][0])}

    def _tell(self, pid: int) -> None:
        if pid in self._told:
            return
        self._told.add(pid)
        what = f"a process imported torch, but the probe could not enter it: {shlex.join(redact.argv(_words_of(pid)))}"
        with contextlib.suppress(OSError), self._notices.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"pid": pid, "notice": what}) + "\n")


def _has_ancestor(pid: int, among: set[int], tree: dict[int, supervise.Stat]) -> bool:
    while pid in tree:
        pid = tree[pid][0]
        if pid in among:
            return True
    return False


def _forked(pid: int, parent: int) -> bool:
    """A fork without exec has its parent's command line, and with it the parent's probe."""
    return _words_of(pid) == _words_of(parent)


def _uses_torch(pid: int) -> bool:
    try:
        return b"/libtorch_cpu." in Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return False


def _words_of(pid: int) -> tuple[str, ...]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ("process", str(pid))
    return tuple(word.decode(errors="replace") for word in words)
