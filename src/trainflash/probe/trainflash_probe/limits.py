"""Stops the program at a step boundary, after so many steps or seconds."""

from __future__ import annotations

import contextlib
import json
import os
import time

from . import process
from .environment import directory, number
from .phases.observer import Observer, TrainFlashStop

MEET_S = 20.0  # how long a rank waits for the others at the last boundary
INSIST = 3  # how often the program may swallow the stop before the process is ended


class Limits(Observer):
    """TRAINFLASH_MAX_STEPS, TRAINFLASH_MAX_SECONDS (since the process started), TRAINFLASH_MIN_STEPS and TRAINFLASH_FEW_STEPS.

    The last is for steps so long that the least would take too long: so many suffice once the training ran for twice the seconds.
    """

    def __init__(self) -> None:
        self.max_steps = number("TRAINFLASH_MAX_STEPS", None)
        self.max_seconds = number("TRAINFLASH_MAX_SECONDS", None)
        self.min_steps = number("TRAINFLASH_MIN_STEPS", 0)
        self.few_steps = number("TRAINFLASH_FEW_STEPS", None)
        self._deadline_ns = None if self.max_seconds is None else process.base_ns + int(self.max_seconds * 1e9)
        self._patient_ns = None  # from then on few steps suffice
        self._ranks = 1
        self._agreed = os.path.join(directory, "stop-at")
        self._raised = 0

    @property
    def wanted(self) -> bool:
        """True when any limit is set."""
        return self.max_steps is not None or self.max_seconds is not None

    def on_boundary(self, step: int) -> None:
        """Raises `TrainFlashStop` when it is time."""
        if self._ranks == 1:
            self._ranks = process.world_size()  # spawned ranks join their group after torch was imported
        if self.max_steps is not None and step >= self.max_steps:
            self._stop(step, "steps")
        if self._deadline_ns is None:
            return
        late = self._late(step, time.monotonic_ns())
        if self._ranks == 1:
            if late:
                self._stop(step, "seconds")
        elif (late and self._agree(step)) or os.path.exists(self._agreed):
            with open(self._agreed, encoding="utf-8") as agreed:
                if step >= int(agreed.read() or step + 1):
                    self._stop(step, "seconds")

    def _late(self, step: int, now_ns: int) -> bool:
        if self._patient_ns is None:
            self._patient_ns = now_ns + int(2e9 * self.max_seconds)
        if now_ns < self._deadline_ns:
            return False
        return step >= self.min_steps or (self.few_steps is not None and step >= self.few_steps and now_ns >= self._patient_ns)

    def _agree(self, step: int) -> bool:
        """All ranks stop at one step: the first that is late names one that none has passed (ranks are one step apart at most)."""
        mine = f"{self._agreed}.{os.getpid()}"
        if not os.path.exists(self._agreed):
            with open(mine, "w", encoding="utf-8") as out:
                out.write(str(step + 2))
            with contextlib.suppress(FileExistsError):
                os.link(mine, self._agreed)
            os.unlink(mine)
        return True

    def _stop(self, step: int, because: str) -> None:
        self._raised += 1
        if self._raised == 1:
            with open(os.path.join(directory, "stopped.json"), "w", encoding="utf-8") as out:
                json.dump({"schema": "trainflash-stopped.v1", "step": step, "because": because, "rank": process.rank()}, out)
            if self._ranks > 1:
                self._wait_for_ranks()
        if self._raised > INSIST:
            os._exit(0)
        raise TrainFlashStop(0)

    def _wait_for_ranks(self) -> None:
        """A rank that leaves while another still talks to it would abort that one: all meet here first (those of this machine)."""
        here = process.local_world_size() or self._ranks_seen_here()
        arrived = f"{os.path.basename(self._agreed)}.arrived-"
        with open(os.path.join(directory, f"{arrived}{process.rank()}"), "w", encoding="utf-8"):
            pass
        deadline = time.monotonic() + MEET_S
        while time.monotonic() < deadline and sum(name.startswith(arrived) for name in os.listdir(directory)) < here:
            time.sleep(0.01)

    def _ranks_seen_here(self) -> int:
        """Spawned ranks are told no local size: those of this machine that train, which by now all do."""
        host, found = process.host(), 0
        for name in os.listdir(directory):
            if name.startswith("process-"):
                with contextlib.suppress(OSError, ValueError), open(os.path.join(directory, name), encoding="utf-8") as file:
                    header = json.load(file)
                    found += header["role"] == "main" and header["host"] == host
        return min(self._ranks, max(1, found))
