"""What two starts must have in common to be counted together: the machine, the settings of the environment, the versions."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Variables that change how fast the same program runs, beside those that the command itself sets.
_SETTINGS = ("OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS_", "NUMEXPR_", "CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "TORCH", "PYTORCH_", "TRITON_")
_SINGLE = ("LD_PRELOAD", "MALLOC_CONF", "MALLOC_ARENA_MAX", "PYTHONMALLOC", "PYTHONOPTIMIZE", "PYTHONDEVMODE", "PYTHONHASHSEED")
_SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD", "LOGS")


def machine() -> dict[str, str]:
    """Names and values of what makes this machine another than the next."""
    facts = {"machine": platform.node(), "kernel": platform.release(), "cores": str(len(os.sched_getaffinity(0)))}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in {"model name", "Hardware"}:
                facts["processor"] = value.strip()
                break
    with contextlib.suppress(OSError):
        facts["governor"] = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text(encoding="ascii").strip()
    devices = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    for number, path in enumerate(devices):
        with contextlib.suppress(OSError):
            facts[f"device {number}"] = path.read_text(encoding="utf-8").partition("Model:")[2].partition("\n")[0].strip()
    return facts


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The inherited variables that bear on speed."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if (name.startswith(_SETTINGS) or name in _SINGLE) and not any(word in name for word in _SECRET)
    }


def versions(headers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Python and torch of the processes that trained, as the probe saw them."""
    first = headers[0] if headers else {}
    return {name: str(first[name]) for name in ("python", "torch") if first.get(name)}


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """`torch was 2.12.0, is 2.13.0`."""
    found = []
    for name in sorted(before.keys() | now.keys()):
        was, is_now = before.get(name), now.get(name)
        if was != is_now:
            found.append(f"{name} was {was or 'not set'}, is {is_now or 'not set'}")
    return found
