"""What this process is: start time, role, rank."""

from __future__ import annotations

import os
import sys
import time

role = "main"  # becomes "worker" inside a DataLoader worker


def start_ns() -> int:
    """When this process started, CLOCK_MONOTONIC; now, where /proc does not say."""
    now = time.monotonic_ns()
    try:
        with open("/proc/self/stat", "rb") as stat:
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
        since_boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        started = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return now - max(0, since_boot - started)
    except (OSError, ValueError, IndexError, AttributeError):
        return now


def _environment_int(name: str, otherwise: int) -> int:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return otherwise


def _distributed():
    """torch.distributed once the program has joined a process group, else None."""
    module = sys.modules.get("torch.distributed")
    is_initialized = getattr(module, "is_initialized", None)
    return module if is_initialized is not None and is_initialized() else None


def rank() -> int:
    """Rank in the process group; before the program joins one as torchrun, accelerate or Slurm say it, else 0."""
    distributed = _distributed()
    if distributed is not None:
        return distributed.get_rank()
    return _environment_int("RANK", _environment_int("SLURM_PROCID", 0) if "SLURM_NTASKS" in os.environ else 0)


def world_size() -> int:
    """Number of ranks, at least 1."""
    distributed = _distributed()
    if distributed is not None:
        return distributed.get_world_size()
    return max(1, _environment_int("WORLD_SIZE", 1))


def local_world_size():
    """Number of ranks on this machine as the launcher says it, else None."""
    return _environment_int("LOCAL_WORLD_SIZE", 0) or None


base_ns = start_ns()  # event words count from here
