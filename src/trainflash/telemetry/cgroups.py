"""Control groups, version 1, version 2 and both at once: quota, throttling, memory, pressure of one process's groups.

Host load and free memory describe the neighbours in a container; these files describe what the container may use. A limit can stand at
any level above the process, so every level up to the top is read and the tightest counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainflash.telemetry.reading import HOST, meminfo, number, pairs, stalled_s, text

UNLIMITED_BYTES = 1 << 60  # version 1 writes "no limit" as a number near 2^63
CPU = "cpu"
MEMORY = "memory"
IO = "io"
_NS_PER_S = 1e9
_US_PER_S = 1e6

Pid = int | str  # "self": this process


@dataclass(frozen=True)
class Throttling:
    """How long and how often the quota stopped the group, since the group was made."""

    seconds: float
    periods: int


@dataclass(frozen=True)
class MemoryUse:
    """Of the group with the tightest limit, else of the machine; None: not readable."""

    used_bytes: int | None  # without page cache that is given back on demand
    limit_bytes: int | None
    events: int | None  # times at the limit, and kills, since the group was made
    swap_bytes: int | None


def quota(root: Path = HOST, pid: Pid = "self") -> float | None:
    """The smallest CPU quota on the way from the process up to the top, in cores; None: no quota."""
    quotas = []
    for directory, version in groups(root, CPU, pid):
        if version == 2:
            fields = (text(directory / "cpu.max") or "").split()
            allowed, period = (number(fields[0]), number(fields[1])) if len(fields) == 2 else (None, None)
        else:
            allowed, period = (number(text(directory / name)) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        if allowed is not None and period and allowed > 0:
            quotas.append(allowed / period)
    return min(quotas, default=None)


def throttling(root: Path = HOST, pid: Pid = "self") -> Throttling | None:
    """Of the level that was stopped longest; None where the kernel does not say."""
    found = []
    for directory, version in groups(root, CPU, pid):
        counters = pairs(text(directory / "cpu.stat"))
        name, per_s = ("throttled_usec", _US_PER_S) if version == 2 else ("throttled_time", _NS_PER_S)
        if name in counters:
            found.append(Throttling(counters[name] / per_s, counters.get("nr_throttled", 0)))
    return max(found, key=lambda level: level.seconds, default=None)


def memory_limits(root: Path = HOST, pid: Pid = "self") -> list[tuple[Path, int]]:
    """Every level that has a memory limit, from the process up, with the limit in bytes."""
    found = []
    for directory, version in groups(root, MEMORY, pid):
        limit = number(text(directory / ("memory.max" if version == 2 else "memory.limit_in_bytes")))
        if limit is not None and limit < UNLIMITED_BYTES:
            found.append((directory, int(limit)))
    return found


def used_bytes(directory: Path) -> int | None:
    """Memory charged to the group of `directory`, without the page cache that the kernel gives back before it kills anybody."""
    charged = number(text(directory / "memory.current") or text(directory / "memory.usage_in_bytes"))
    if charged is None:
        return None
    counters = pairs(text(directory / "memory.stat"))
    return max(0, int(charged) - counters.get("total_inactive_file", counters.get("inactive_file", 0)))


def memory(root: Path = HOST, pid: Pid = "self") -> MemoryUse:
    """Memory of the group whose limit is tightest; of the machine, where no group's limit is below the machine's memory."""
    machine = meminfo(root)
    limits = memory_limits(root, pid)
    directory, limit = min(limits, key=lambda level: level[1], default=(None, None))
    total, available = machine.get("MemTotal"), machine.get("MemAvailable")
    if directory is None or (total is not None and total < limit):
        swap = machine["SwapTotal"] - machine["SwapFree"] if {"SwapTotal", "SwapFree"} <= machine.keys() else None
        used = total - available if total is not None and available is not None else None
        return MemoryUse(used, total, _memory_events(root, pid), swap)
    return MemoryUse(used_bytes(directory), limit, _memory_events(root, pid), _swap_bytes(directory))


def pressure_s(resource: str, root: Path = HOST, pid: Pid = "self") -> float | None:
    """Seconds in which some task of the group (else: of the machine) stalled for cpu, memory or io, since boot."""
    for directory, version in groups(root, resource, pid):
        if version == 2 and (found := stalled_s(text(directory / f"{resource}.pressure"))) is not None:
            return found
    return stalled_s(text(root / "proc/pressure" / resource))


def groups(root: Path, controller: str, pid: Pid = "self") -> list[tuple[Path, int]]:
    """Directories of `controller` from the process's group up to the top, with the version.

    In a container the path that `/proc/PID/cgroup` names is often not visible: its existing ancestors then stand for it.
    """
    found = []
    for line in (text(root / f"proc/{pid}/cgroup") or "").splitlines():
        fields = line.split(":", 2)
        if len(fields) != 3:
            continue
        _, controllers, group = fields
        if controllers == "":
            tops = [(root / "sys/fs/cgroup", 2), (root / "sys/fs/cgroup/unified", 2)]
        elif controller in controllers.split(","):
            tops = [(root / "sys/fs/cgroup" / name, 1) for name in dict.fromkeys((controller, controllers))]
        else:
            continue
        for top, version in tops:
            inside = top / group.lstrip("/")
            while inside != top and top in inside.parents:
                found.append((inside, version))
                inside = inside.parent
            found.append((top, version))
    return [(directory, version) for directory, version in dict.fromkeys(found) if directory.is_dir()]


def _memory_events(root: Path, pid: Pid) -> int | None:
    """Of the process's own group, where it counts them: version 2 counts those of the groups below too."""
    for directory, version in groups(root, MEMORY, pid):
        if version == 2:
            counters = pairs(text(directory / "memory.events"))
            if "max" in counters:
                return counters["max"] + counters.get("oom_kill", 0)
        elif (failed := number(text(directory / "memory.failcnt"))) is not None:
            return int(failed) + pairs(text(directory / "memory.oom_control")).get("oom_kill", 0)
    return None


def _swap_bytes(directory: Path) -> int | None:
    swapped = number(text(directory / "memory.swap.current"))
    if swapped is not None:
        return int(swapped)
    both, memory_alone = (number(text(directory / f"memory.{name}usage_in_bytes")) for name in ("memsw.", ""))
    return None if both is None or memory_alone is None else max(0, int(both - memory_alone))
