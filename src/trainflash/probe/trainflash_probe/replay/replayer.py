"""What-if replay: blocks of live steps and blocks of steps without one cost alternate in one throw-away run.

TRAINFLASH_REPLAY says in JSON what is taken away: `{"replay": "samples" | "collated" | "batches" | "function" | "anomaly" | "threads" |
"checkpointing", "at": [file, line, function] or null, "value": a number or null, "settle": steps, "block_s": seconds}`; `value` is how
many results of a function are kept for equal arguments, or how many threads to compute with. The run begins
with steps in which results are kept; then blocks follow in the order live, replay, replay, live, so that a machine that gets slower
or faster favours neither. The first `settle` steps after each switch are not measured. One JSON line a block goes to
`replay-blocks.jsonl`; the run ends when the launcher leaves `replay-stop`.

All processes of the program read the mode from one byte of a shared file (`mode`), so that worker processes replay too.
"""

from __future__ import annotations

import json
import os
import threading
import time

from .. import process
from ..environment import directory
from ..files import Kept
from ..phases.loop import loop
from ..phases.observer import Observer, TrainFlashStop
from ..writer import notice
from . import places, switches
from .mode import COLLECT, LIVE, REPLAY, mode, open_mode, set_mode

COLLECT_STEPS, COLLECT_S, COLLECT_MOST_S = 8, 1.0, 6.0
BLOCK_STEPS = 10  # a block is over after so many steps and `block_s` seconds …
LEAST_STEPS, LONG = 3, 4.0  # … or, where steps are long, after a few steps and so many times `block_s`
INSIST = 3  # how often the program may swallow the stop before the process is ended


def observer(torch):
    """Install what can be replayed and return the block keeper; None where nothing can be, and then nothing was changed."""
    spec = json.loads(os.environ["TRAINFLASH_REPLAY"])
    if process.world_size() > 1:
        notice("replay: several ranks train")
        return None
    open_mode()
    switch = switches.find(torch, spec)
    return Blocks(spec, switch, places.install(torch, spec) if switch is None else None)


class Blocks(Observer):
    """Switches the mode at step boundaries, and writes down what each block took. Only the first process that trains does."""

    def __init__(self, spec: dict, switch, places) -> None:
        self._switch, self._places = switch, places
        self._settle, self._block_s = int(spec.get("settle") or 0), float(spec["block_s"])
        self._pid = None
        self._file = self._schedstat = None
        self._number = 0
        self._drop = 0
        self._raised = 0

    def on_boundary(self, step: int) -> None:
        """Raises `TrainFlashStop` when the launcher has seen enough."""
        if self._pid != os.getpid():
            if self._pid is not None or not self._claim():
                loop.remove(self.on_boundary)
                return
            self._collecting_since = time.monotonic()
        if self._raised:
            self._stop(step)
        if mode() == COLLECT:
            self._collect(step)
        elif self._drop > 0:
            self._drop -= 1
            if not self._drop:
                self._begin(step)
        else:
            self._end(step)

    def _claim(self) -> bool:
        try:
            self._file = Kept(os.path.join(directory, "replay-blocks.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        except FileExistsError:
            return False
        self._pid = os.getpid()
        try:
            self._schedstat = Kept(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        except OSError:
            self._schedstat = None
        return True

    def _collect(self, step: int) -> None:
        if self._places is not None:
            self._places.look()
        took = time.monotonic() - self._collecting_since
        least = COLLECT_STEPS + self._settle
        if (step >= least and took >= COLLECT_S) or (step > LEAST_STEPS and took >= COLLECT_MOST_S):
            missing = self._places.missing() if self._places is not None else ""
            if missing:
                self._write({"error": missing})
                self._stop(step)
            self._set(LIVE, step)

    def _set(self, new: int, step: int) -> None:
        """Enter a mode; what changes settles before it is measured."""
        changed = new != mode()
        set_mode(new)
        if changed and self._switch is not None:
            self._switch(new == REPLAY)
        self._drop = max(1, self._settle) if changed else 0
        if not self._drop:
            self._begin(step)

    def _begin(self, step: int) -> None:
        self._first = step
        self._waited, self._cpu = self._waited_ns(), time.process_time_ns()
        self._began = time.monotonic_ns()

    def _end(self, step: int) -> None:
        now = time.monotonic_ns()
        steps, took_s = step - self._first, (now - self._began) / 1e9
        enough = steps >= BLOCK_STEPS and took_s >= self._block_s
        if not enough and not (steps >= LEAST_STEPS and took_s >= LONG * self._block_s):
            return
        waited = self._waited_ns()
        line = {
            "mode": "replay" if mode() == REPLAY else "live",
            "first": self._first,
            "steps": steps,
            "wall_ns": now - self._began,
            "runq_ns": None if waited is None or self._waited is None else waited - self._waited,
            "cpu_ns": time.process_time_ns() - self._cpu,
        }
        self._write(line)
        self._number += 1
        if os.path.exists(os.path.join(directory, "replay-stop")):
            self._stop(step)
        self._set(REPLAY if self._number % 4 in (1, 2) else LIVE, step)

    def _write(self, line: dict) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")

    def _waited_ns(self):
        if self._schedstat is None:
            return None
        try:
            return int(os.pread(self._schedstat.fileno(), 80, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return None

    def _stop(self, step: int) -> None:
        self._raised += 1
        if self._raised == 1:
            with open(os.path.join(directory, "stopped.json"), "w", encoding="utf-8") as out:
                json.dump({"schema": "trainflash-stopped.v1", "step": step, "because": "replay", "rank": process.rank()}, out)
        if self._raised > INSIST:
            os._exit(0)
        raise TrainFlashStop(0)
