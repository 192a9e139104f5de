"""Keeps each busy process of a tree on a core of its own, so that a trainer and its worker do not share one by chance.

Processes of one tree stick to cores. On a busy two-core machine a program that waits for one DataLoader worker was up to 65 % slower
for seconds, in one of two identical copies only; with a lasting pin, the same for both and drawn anew for each pair of slices,
the noise of one start fell from 0.21 to 0.06. For a program of one process a pin gains nothing.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainflash.launch import supervise

BUSY = 0.05  # of the CPU time of the tree; shells, resource trackers and servers of semaphores stay below, on a busy machine too
SECOND_THREAD = 0.25  # of the busiest thread: more makes a process of several busy threads, which one core would slow

Usage = dict[int, dict[int, int]]  # process → thread → nanoseconds on a core


def usage(root: int) -> Usage:
    """Time on a core so far of every thread below `root`."""
    return {pid: _threads(pid) for pid in supervise.living(root)}


def busy(before: Usage, after: Usage) -> list[int] | None:
    """The processes that were at work between two looks, parents first; None: they must not be pinned.

    They must not where processes came or went in between, where one of them keeps several threads busy, or where the owner (or the
    machine) has pinned one already.
    """
    if set(before) != set(after):
        return None
    spent_by = {pid: sorted((ns - before[pid].get(tid, 0) for tid, ns in threads.items()), reverse=True) for pid, threads in after.items()}
    whole = sum(sum(spent) for spent in spent_by.values())
    found = []
    for pid, spent in spent_by.items():
        if not whole or sum(spent) < BUSY * whole:
            continue
        if len(spent) > 1 and spent[1] > SECOND_THREAD * spent[0]:
            return None
        with contextlib.suppress(OSError):
            if os.sched_getaffinity(pid) != os.sched_getaffinity(0):
                return None
        found.append(pid)
    return found


class Pins:
    """The pins of two trees that are measured in turns. `settled` says whether all slices since `hold` kept their processes."""

    def __init__(self, roots: Iterable[int], rng: random.Random) -> None:
        self.roots = tuple(roots)
        self.settled = True
        self._rng = rng
        self._held: Mapping[int, list[int]] | None = None
        self._known: dict[int, set[int]] = {}

    @property
    def held(self) -> bool:
        return self._held is not None

    def hold(self, working: Mapping[int, list[int] | None]) -> bool:
        """Pin from now on the processes of `working` (by root), if that is fair: as many on both sides, and a core for each."""
        lists = [working[root] for root in self.roots]
        counts = {len(pids) for pids in lists if pids is not None}
        if None in lists or len(counts) != 1 or not 2 <= counts.pop() <= len(os.sched_getaffinity(0)):
            return False
        self._held = {root: list(working[root] or ()) for root in self.roots}
        self._known = {root: set(supervise.living(root)) for root in self.roots}
        return True

    def draw(self) -> None:
        """New cores for the next pair of slices, the same on both sides. A process that came or went ends all pinning."""
        if self._held is None:
            return
        if any(set(supervise.living(root)) != known for root, known in self._known.items()):
            self.settled = False
            self.release()
            return
        cores = sorted(os.sched_getaffinity(0))
        self._rng.shuffle(cores)
        for pids in self._held.values():
            for pid, core in zip(pids, cores, strict=False):
                _set(pid, {core})

    def release(self) -> None:
        """Let every process use all cores again."""
        if self._held is None:
            return
        self._held = None
        for root in self.roots:
            for pid in supervise.living(root):
                _set(pid, os.sched_getaffinity(0))


def _set(pid: int, cores: Iterable[int]) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(name), cores)


def _threads(pid: int) -> dict[int, int]:
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                found[int(name)] = int(Path(f"/proc/{pid}/task/{name}/schedstat").read_bytes().split()[0])
    return found
