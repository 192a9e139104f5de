"""The accelerator driver's version: NVIDIA's by NVML, else by its file in /proc; AMD's by its kernel module."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pynvml

from trainflash.telemetry.reading import HOST, text


def nvidia_driver(root: Path = HOST, nvml: Any = pynvml) -> str | None:
    """Such as "550.54.15"; None without a driver."""
    try:
        nvml.nvmlInit()
        try:
            said = nvml.nvmlSystemGetDriverVersion()
        finally:
            nvml.nvmlShutdown()
        return said.decode() if isinstance(said, bytes) else str(said)
    except nvml.NVMLError:
        found = re.search(r"Kernel Module(?: for \S+)?\s+([\d.]+)", text(root / "proc/driver/nvidia/version") or "")
        return found[1] if found else None


def amd_driver(root: Path = HOST) -> str | None:
    """The version of the amdgpu module; None where there is none, or the kernel's own says no version."""
    return text(root / "sys/module/amdgpu/version") or None
