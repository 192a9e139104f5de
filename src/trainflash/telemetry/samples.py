"""One line of `telemetry.jsonl`, typed, and a reader that takes what is whole and leaves the rest. History: telemetry.v1, first version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from trainflash.errors import UsageError
from trainflash.schema import from_plain, to_plain
from trainflash.telemetry.gpu import GpuSample

FILE = "telemetry.jsonl"


@dataclass(frozen=True)
class HostSample:
    """Machine, control group and the watched processes. Names that end in `_s`, and bytes read, written or sent, only grow."""

    processes: int | None = None
    cpu_s: float | None = None  # of the watched processes, since the recording began
    read_bytes: int | None = None  # by read calls
    device_read_bytes: int | None = None
    device_written_bytes: int | None = None
    network_bytes: int | None = None
    cpus: float | None = None
    machine_busy_s: float | None = None  # all cores of the machine
    throttled_s: float | None = None
    throttled_periods: int | None = None
    pressure_cpu_s: float | None = None
    pressure_memory_s: float | None = None
    pressure_io_s: float | None = None
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    memory_events: int | None = None
    swap_used_bytes: int | None = None
    shm_used_bytes: int | None = None
    shm_total_bytes: int | None = None


@dataclass(frozen=True)
class Sample:
    """One moment of CLOCK_MONOTONIC, the clock of the run's events too."""

    SCHEMA: ClassVar[str] = "telemetry.v1"
    t_ns: int
    host: HostSample
    gpus: tuple[GpuSample, ...] = ()


def line(sample: Sample) -> str:
    """The sample as one line of JSON, with its end."""
    return json.dumps(_without_none(to_plain(sample)), separators=(",", ":")) + "\n"


def read(path: Path) -> tuple[Sample, ...]:
    """All whole samples of the file in the order of their time; empty when there is none."""
    found = []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    for written in lines:
        try:
            found.append(from_plain(Sample, json.loads(written), path.name))
        except (ValueError, UsageError):
            continue  # cut short by a full disk or a kill, or of another version
    return tuple(sorted(found, key=lambda sample: sample.t_ns))


def _without_none(plain: object) -> object:
    if isinstance(plain, dict):
        return {name: _without_none(value) for name, value in plain.items() if value is not None}
    return [_without_none(value) for value in plain] if isinstance(plain, (list, tuple)) else plain
