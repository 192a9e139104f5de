"""What this process is: start time, role, rank, machine."""

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


# How launchers tell a process its rank, the number of ranks, and how many of them are on this machine: torchrun and accelerate, Open MPI,
# MPICH and Intel MPI. The task of a Slurm step is the last guess: a launcher may run inside it.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
)


def in_step() -> bool:
    """Whether srun started this process for the program: a step around the launcher, as of an interactive shell, says nothing of it."""
    step = slurm_step(os.environ)
    return bool(step) and step != os.environ.get("TRAINFLASH_STEP", "")


def slurm_step(environment) -> str:
    """Job and step as one word; "" outside of a step. A batch script is in none."""
    step = environment.get("SLURM_STEP_ID", "")
    return "%s.%s" % (environment.get("SLURM_JOB_ID", ""), step) if step else ""


def _told(which: int, otherwise: int) -> int:
    """What the launcher says: 0 for the rank, 1 for the number of ranks, 2 for those of this machine."""
    for names in _LAUNCHERS:
        if names[0] in os.environ:
            return _environment_int(names[which], otherwise)
    if not in_step():
        return otherwise
    if which == 2:
        return _tasks_here() or otherwise
    return _environment_int(("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")[which], otherwise)


def _tasks_here() -> int:
    """Tasks of the step on this node: `2(x3),1` says 2, 2, 2, 1."""
    counts: list = []
    try:
        for part in os.environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
            count, _, times = part.partition("(x")
            counts += [int(count)] * int(times.rstrip(")") or 1)
        return counts[_environment_int("SLURM_NODEID", 0)]
    except (ValueError, IndexError):
        return 0


def rank() -> int:
    """Rank in the process group; before the program joins one as its launcher says it, else 0."""
    distributed = _distributed()
    return distributed.get_rank() if distributed is not None else _told(0, 0)


def world_size() -> int:
    """Number of ranks, at least 1."""
    distributed = _distributed()
    return distributed.get_world_size() if distributed is not None else max(1, _told(1, 1))


def local_world_size():
    """Number of ranks on this machine as the launcher says it, else None."""
    return _told(2, 0) or None


def host() -> str:
    """The machine; under srun by the name that Slurm gives the node."""
    node = os.environ.get("SLURMD_NODENAME", "") if in_step() else ""
    return node or os.uname().nodename


base_ns = start_ns()  # event words count from here
