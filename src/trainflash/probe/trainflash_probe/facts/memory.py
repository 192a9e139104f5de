"""Memory of the training process, of its control group and of its device; reads counters only and never starts CUDA."""

from __future__ import annotations

import os
import resource
import time

from ..writer import fact
from . import cgroup

_NO_LIMIT = 1 << 60  # version 1 writes a huge number where there is none


class MemoryFacts:
    """Cumulative counters; the reader takes the difference of the first and the newest."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._limit = self._machine = None

    def write(self) -> None:
        """A few small files of /proc, and the allocator's own statistics where CUDA is in use."""
        if self._machine is None:
            self._machine = _kib("/proc/meminfo", "MemTotal")
            self._limit = limit_bytes()
        limits = [limit for limit in (self._machine, self._limit) if limit]
        usage = resource.getrusage(resource.RUSAGE_SELF)
        fact(
            "memory",
            t=time.monotonic_ns(),
            peak=_kib("/proc/self/status", "VmHWM") or usage.ru_maxrss * 1024,
            swapped=_kib("/proc/self/status", "VmSwap"),
            limit=min(limits, default=None),
            faults=usage.ru_majflt,
            events=limit_events(),
            stalled_us=stalled_us(),
            device=self._device(),
        )

    def _device(self):
        cuda = getattr(self._torch, "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return None
        statistics = cuda.memory_stats()
        return {
            "peak": statistics.get("allocated_bytes.all.peak"),
            "reserved": statistics.get("reserved_bytes.all.peak"),
            "total": cuda.get_device_properties(cuda.current_device()).total_memory,
            "retries": statistics.get("num_alloc_retries"),
        }


def _kib(path: str, name: str):
    """Bytes of the line `name: 12 kB`; None without it."""
    for line in (cgroup.read(path) or "").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def limit_bytes():
    """What the control group allows, version 2 or 1; None: no limit."""
    for path in cgroup.paths(cgroup.UNIFIED, ""):
        text = cgroup.read(os.path.join(path, "memory.max"))
        if text is not None:
            return None if text == "max" else int(text)
    for path in cgroup.paths(cgroup.OF_MEMORY, "memory"):
        text = cgroup.read(os.path.join(path, "memory.limit_in_bytes"))
        if text is not None:
            return int(text) if int(text) < _NO_LIMIT else None
    return None


def limit_events():
    """How often the group was at its limit so far, out-of-memory kills included; None where the kernel does not say."""
    for path in cgroup.paths(cgroup.UNIFIED, ""):
        text = cgroup.read(os.path.join(path, "memory.events"))
        if text is not None:
            counts = dict(line.split() for line in text.splitlines())
            return int(counts.get("max", 0)) + int(counts.get("oom", 0))
    for path in cgroup.paths(cgroup.OF_MEMORY, "memory"):
        text = cgroup.read(os.path.join(path, "memory.failcnt"))
        if text is not None:
            return int(text)
    return None


def stalled_us():
    """Microseconds so far in which some task waited for memory: the group's, else the machine's; None without PSI."""
    paths = [os.path.join(path, "memory.pressure") for path in cgroup.paths(cgroup.UNIFIED, "")]
    for path in (*paths, "/proc/pressure/memory"):
        for line in (cgroup.read(path) or "").splitlines():
            if line.startswith("some"):
                return int(line.rpartition("total=")[2])
    return None


def install(torch) -> MemoryFacts:
    """Nothing needs to be wrapped."""
    return MemoryFacts(torch)
