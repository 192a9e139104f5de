"""Counters of the machine, its control groups, its GPUs and a program's processes: what they are now, and what they did during a run.

`Recorder` writes typed samples beside a run's events, `read` and `derive` make `schema.Telemetry` of them. Nothing here raises for what
cannot be measured: it is None.
"""

from trainflash.telemetry.derive import derive
from trainflash.telemetry.disks import disk_bytes
from trainflash.telemetry.gpu import Gpus, GpuSample, gpus
from trainflash.telemetry.machine import (
    cpu_budget,
    cpu_quota,
    disk_free_bytes,
    machine,
    memory_available_bytes,
    memory_limit_bytes,
    pressure_cpu,
)
from trainflash.telemetry.sampler import INTERVAL_S, Recorder, Watch, recording
from trainflash.telemetry.samples import FILE, HostSample, Sample, read

__all__ = [
    "FILE", "INTERVAL_S", "GpuSample", "Gpus", "HostSample", "Recorder", "Sample", "Watch", "cpu_budget", "cpu_quota", "derive",
    "disk_bytes", "disk_free_bytes", "gpus", "machine", "memory_available_bytes", "memory_limit_bytes", "pressure_cpu", "read", "recording",
]  # fmt: skip
