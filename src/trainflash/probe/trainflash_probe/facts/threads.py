"""CPU budget of the process, what it asks for and what it gets."""

from __future__ import annotations

import os
import resource
import threading
import time

from ..guard import swallow
from ..phases.loop import loop
from ..phases.observer import Observer
from ..runqueue import of_thread
from ..writer import fact
from . import cgroup

FIRST_STEP = 5  # the figures begin when the first steps are over


class ThreadFacts(Observer):
    """Writes the CPU time so far now and then: the reader takes the difference of the first and the newest."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._begun = False

    def on_boundary(self, step: int) -> None:
        """What was asked for, once, and the first figures."""
        if step >= FIRST_STEP:
            loop.remove(self.on_boundary)
            self._begun = True
            fact(
                "threads",
                affinity=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
                cgroup_cpus=cgroup_cpus(),
                torch_threads=self._torch.get_num_threads(),
                interop_threads=self._torch.get_num_interop_threads(),
                omp_num_threads=os.environ.get("OMP_NUM_THREADS"),
            )
            self._write()

    def on_interval(self, step: int) -> None:
        """The figures so far."""
        if self._begun:
            self._write()

    def on_exit(self) -> None:
        """The last figures."""
        if self._begun:
            self._write()

    def _write(self) -> None:
        oncpu, runq = of_thread(threading.get_native_id())
        fact("cpu", t=time.monotonic_ns(), cpu_ns=cpu_ns(), oncpu_ns=oncpu, runq_ns=runq)


def cpu_ns() -> int:
    """CPU time of this process, its reaped children and its live ones, so that it never falls."""
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time_ns() + int((reaped.ru_utime + reaped.ru_stime) * 1e9)
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    for pid in _descendants(os.getpid()):
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
            total += (int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])) * tick
        except (OSError, ValueError, IndexError):
            continue
    return total


def _descendants(pid: int) -> list:
    found, todo = [], [pid]
    while todo and len(found) < 500:
        parent = todo.pop()
        try:
            tasks = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                with open(f"/proc/{parent}/task/{task}/children", encoding="utf-8") as children:
                    pids = [int(child) for child in children.read().split()]
            except (OSError, ValueError):
                continue
            found += pids
            todo += pids
    return found


def cgroup_cpus() -> float:
    """CPUs that the control group grants by quota ÷ period, version 2 or 1; None: no limit."""
    try:
        return _quota()
    except Exception as error:
        swallow("cgroup", error)
        return None


def _quota():
    for path in cgroup.paths(cgroup.UNIFIED, ""):
        text = cgroup.read(os.path.join(path, "cpu.max"))
        if text is not None:
            quota, _, period = text.partition(" ")
            return None if quota == "max" else int(quota) / int(period)
    for path in cgroup.paths(cgroup.OF_CPU, "cpu"):
        quota, period = cgroup.read(os.path.join(path, "cpu.cfs_quota_us")), cgroup.read(os.path.join(path, "cpu.cfs_period_us"))
        if quota is not None and period is not None:
            return None if int(quota) <= 0 else int(quota) / int(period)
    return None
