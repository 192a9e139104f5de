"""What the machine has and how busy it is: CPU budget, memory, disk, pressure, and the fingerprint that makes runs comparable.

Host load and free memory describe the neighbours in a container, so budgets come from the cgroup (v1 and v2) as well as from the host,
and the smaller one counts. All functions read files below `root` ("/" but in tests) and return None for what cannot be measured.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pynvml

HOST = Path("/")
UNLIMITED_BYTES = 1 << 60  # cgroup v1 writes "no limit" as a number near 2^63
CPU_CONTROLLER = "cpu"
MEMORY_CONTROLLER = "memory"


def cpu_budget(root: Path = HOST) -> float | None:
    """Cores that this process can use: CPU affinity and cgroup quota, the smaller; may be a fraction."""
    budgets = [budget for budget in (_affinity(), cpu_quota(root)) if budget is not None]
    return min(budgets, default=None)


def cpu_quota(root: Path = HOST) -> float | None:
    """The smallest cgroup CPU quota on the way from this process up to the root, in cores; None: no quota."""
    quotas = []
    for directory, version in _cgroups(root, CPU_CONTROLLER):
        if version == 2:
            fields = (_text(directory / "cpu.max") or "").split()
            quota, period = (_number(fields[0]), _number(fields[1])) if len(fields) == 2 else (None, None)
        else:
            quota, period = (_number(_text(directory / name)) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        if quota is not None and period and quota > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_limit_bytes(root: Path = HOST) -> int | None:
    """Memory that this process can use: the machine's, or the smallest cgroup limit above it."""
    limits = [limit for _, limit in _memory_limits(root)]
    total = _meminfo(root).get("MemTotal")
    return min([*limits, *([total] if total is not None else [])], default=None)


def memory_available_bytes(root: Path = HOST) -> int | None:
    """Memory still free for this process: the host's available memory, or what is left below the tightest cgroup limit."""
    left = []
    for directory, limit in _memory_limits(root):
        used = _number(_text(directory / "memory.current") or _text(directory / "memory.usage_in_bytes"))
        if used is not None:
            left.append(max(0, limit - int(used) + _reclaimable(directory)))
    host = _meminfo(root).get("MemAvailable")
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
    for line in (_text(root / "proc/pressure/cpu") or "").splitlines():
        kind, *fields = line.split()
        if kind == "some":
            found = _number(dict(field.partition("=")[::2] for field in fields).get("avg10"))
            return None if found is None else found / 100
    return None


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


def gpus() -> tuple[str, ...]:
    """Names of the NVIDIA GPUs, in the driver's order; empty without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        names = [pynvml.nvmlDeviceGetName(handle) for handle in handles]
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()
    return tuple(name.decode() if isinstance(name, bytes) else name for name in names)


def _affinity() -> float | None:
    try:
        return float(len(os.sched_getaffinity(0)))
    except (AttributeError, OSError):
        return float(os.cpu_count()) if os.cpu_count() else None


def _cgroups(root: Path, controller: str) -> list[tuple[Path, int]]:
    """Directories of `controller` from this process's group up to the top, with the cgroup version.

    In a container the path that `/proc/self/cgroup` names is often not visible: its existing ancestors then stand for it.
    """
    found = []
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
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


def _memory_limits(root: Path) -> list[tuple[Path, int]]:
    found = []
    for directory, version in _cgroups(root, MEMORY_CONTROLLER):
        limit = _number(_text(directory / ("memory.max" if version == 2 else "memory.limit_in_bytes")))
        if limit is not None and limit < UNLIMITED_BYTES:
            found.append((directory, int(limit)))
    return found


def _reclaimable(directory: Path) -> int:
    """Page cache that the kernel gives back before it kills anybody."""
    for line in (_text(directory / "memory.stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(_number(value) or 0)
    return 0


def _meminfo(root: Path) -> dict[str, int]:
    found = {}
    for line in (_text(root / "proc/meminfo") or "").splitlines():
        name, _, rest = line.partition(":")
        kilobytes = _number(rest.removesuffix("kB").strip())
        if kilobytes is not None:
            found[name] = int(kilobytes) * 1024
    return found


def _cpu_model(root: Path) -> str | None:
    for line in (_text(root / "proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "Hardware"):
            return value.strip()
    return platform.processor() or platform.machine() or None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
