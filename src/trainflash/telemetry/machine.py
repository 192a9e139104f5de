"""What the machine has and how busy it is: CPU budget, memory, disk, pressure, and the fingerprint that makes runs comparable.

Budgets come from the control groups as well as from the host, and the smaller one counts. All functions read files below `root` ("/" but
in tests) and return None for what cannot be measured.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from trainflash.telemetry import cgroups
from trainflash.telemetry.gpu import gpus
from trainflash.telemetry.reading import HOST, meminfo, stalled_share, text


def cpu_budget(root: Path = HOST, pid: int | None = None) -> float | None:
    """Cores that a process (None: this one) can use: CPU affinity and cgroup quota, the smaller; may be a fraction."""
    budgets = [budget for budget in (_affinity(pid or 0), cgroups.quota(root, pid or "self")) if budget is not None]
    return min(budgets, default=None)


def cpu_quota(root: Path = HOST) -> float | None:
    """The smallest cgroup CPU quota on the way from this process up to the root, in cores; None: no quota."""
    return cgroups.quota(root)


def memory_limit_bytes(root: Path = HOST) -> int | None:
    """Memory that this process can use: the machine's, or the smallest cgroup limit above it."""
    limits = [limit for _, limit in cgroups.memory_limits(root)]
    total = meminfo(root).get("MemTotal")
    return min([*limits, *([total] if total is not None else [])], default=None)


def memory_available_bytes(root: Path = HOST) -> int | None:
    """Memory still free for this process: the host's available memory, or what is left below the tightest cgroup limit."""
    left = []
    for directory, limit in cgroups.memory_limits(root):
        used = cgroups.used_bytes(directory)
        if used is not None:
            left.append(max(0, limit - used))
    host = meminfo(root).get("MemAvailable")
    return min([*left, *([host] if host is not None else [])], default=None)


def disk_free_bytes(path: Path) -> int | None:
    """Free bytes for this user on the file system of `path` or of its nearest existing parent."""
    for place in (path, *path.absolute().parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return None


def pressure_cpu(root: Path = HOST) -> float | None:
    """Share of the last ten seconds in which some task waited for a core (`/proc/pressure/cpu`, 0 to 1)."""
    return stalled_share(text(root / "proc/pressure/cpu"))


def machine(root: Path = HOST) -> dict[str, str]:
    """What must be alike before timings are compared: processor, cores, quota, memory, kernel, GPUs. Absent key: not measurable."""
    memory = memory_limit_bytes(root)
    budget = cpu_budget(root)
    found = {
        "cpu": _cpu_model(root),
        "cores": str(os.cpu_count()) if os.cpu_count() else None,
        "cpu_budget": f"{budget:g}" if budget is not None else None,
        "memory_gb": f"{memory / 1e9:.1f}" if memory is not None else None,
        "kernel": platform.release() or None,
        "gpus": ", ".join(gpus()) or "none",
    }
    return {name: value for name, value in found.items() if value is not None}


def _affinity(pid: int) -> float | None:
    try:
        return float(len(os.sched_getaffinity(pid)))
    except (AttributeError, OSError):
        return float(os.cpu_count()) if os.cpu_count() else None


def _cpu_model(root: Path) -> str | None:
    for line in (text(root / "proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "Hardware"):
            return value.strip()
    return platform.processor() or platform.machine() or None
