"""Samples between two moments → `schema.Telemetry`: rates by differences, means, peaks, and whether a GPU swings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from trainflash.schema import GpuStat, HostStat, Telemetry
from trainflash.telemetry.gpu import GpuSample
from trainflash.telemetry.samples import Sample

_NS_PER_S = 1e9
_BYTES_PER_MB = 1e6
_HARMLESS = {"idle", "applications_clocks", "sync_boost", "display_clocks"}  # not a limit that the GPU ran into
# T3: starved GPUs show a sawtooth. It must swing over half of the scale, several times: one pause (a checkpoint) is none.
_SWING = 0.5
_LEAST_TURNS = 4
_LEAST_SAMPLES = 8


def derive(samples: Sequence[Sample], from_ns: int | None = None, to_ns: int | None = None) -> Telemetry | None:
    """What happened between two moments of CLOCK_MONOTONIC (None: from the first, to the last); None without a sample there."""
    within = [each for each in samples if (from_ns is None or each.t_ns >= from_ns) and (to_ns is None or each.t_ns <= to_ns)]
    if not within:
        return None
    steps = [(b.t_ns - a.t_ns) / _NS_PER_S for a, b in pairwise(within)]
    return Telemetry(round(median(steps), 3) if steps else 0.0, _host(within), _gpus(within))


def sawtooth(busy: Sequence[float]) -> bool | None:
    """Whether utilisation (0 to 1) swings between idle and busy again and again; None for too few samples."""
    if len(busy) < _LEAST_SAMPLES:
        return None
    ordered = sorted(busy)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    if high - low < _SWING:
        return False
    third = (high - low) / 3
    sides = [value > high - third for value in busy if value > high - third or value < low + third]
    turns = sum(a != b for a, b in pairwise(sides))
    return turns >= _LEAST_TURNS


def rate(times_ns: Sequence[int], values: Sequence[float | None]) -> float | None:
    """Growth of a counter a second; an interval in which it went backwards (a process ended) is left out. None under two values."""
    known = [(t, value) for t, value in zip(times_ns, values, strict=True) if value is not None]
    grown = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(known) if b[1] >= a[1]]
    elapsed = sum(step for step, _ in grown)
    return sum(more for _, more in grown) / (elapsed / _NS_PER_S) if elapsed > 0 else None


def _host(samples: Sequence[Sample]) -> HostStat:
    times = [each.t_ns for each in samples]

    def column(name: str) -> list:
        return [getattr(each.host, name) for each in samples]

    def per_s(name: str) -> float | None:
        return rate(times, column(name))

    return HostStat(
        samples=len(samples),
        cpus=_newest(column("cpus")),
        cpu_used=per_s("cpu_s"),
        throttled_share=_share(per_s("throttled_s")),
        throttled_periods=_grown(column("throttled_periods")),
        pressure_cpu=_share(per_s("pressure_cpu_s")),
        load=per_s("machine_busy_s"),
        memory_used_bytes=_most(column("memory_used_bytes")),
        memory_limit_bytes=_newest(column("memory_limit_bytes")),
        memory_events=_grown(column("memory_events")),
        swap_used_bytes=_most(column("swap_used_bytes")),
        disk_read_mb_s=_mb(per_s("device_read_bytes")),
        disk_write_mb_s=_mb(per_s("device_written_bytes")),
        read_mb_s=_mb(per_s("read_bytes")),
        network_mb_s=_mb(per_s("network_bytes")),
        shm_used_bytes=_most(column("shm_used_bytes")),
        shm_total_bytes=_newest(column("shm_total_bytes")),
        processes=_most(column("processes")),
        pressure_memory=_share(per_s("pressure_memory_s")),
        pressure_io=_share(per_s("pressure_io_s")),
    )


def _gpus(samples: Sequence[Sample]) -> tuple[GpuStat, ...]:
    """The GPUs that the watched processes used; all of them where the driver does not say which."""
    by_index: dict[int, list[GpuSample]] = {}
    for each in samples:
        for gpu in each.gpus:
            by_index.setdefault(gpu.index, []).append(gpu)
    used = {index for index, seen in by_index.items() if any(gpu.ours for gpu in seen)}
    return tuple(_gpu(by_index[index]) for index in sorted(used or by_index))


def _gpu(seen: Sequence[GpuSample]) -> GpuStat:
    def column(name: str) -> list:
        return [value for each in seen if (value := getattr(each, name)) is not None]

    reasons = sorted({reason for each in seen for reason in each.reasons} - _HARMLESS)
    return GpuStat(
        index=seen[0].index,
        name=seen[0].name,
        samples=len(seen),
        busy=_mean(column("busy")),
        memory_busy=_mean(column("memory_busy")),
        memory_used_bytes=_most(column("memory_used_bytes")),
        memory_total_bytes=_most(column("memory_total_bytes")),
        pcie_rx_mb_s=_mean(column("pcie_rx_mb_s")),
        pcie_tx_mb_s=_mean(column("pcie_tx_mb_s")),
        power_w=_mean(column("power_w")),
        power_limit_w=_mean(column("power_limit_w")),
        sm_clock_mhz=_mean(column("sm_clock_mhz")),
        sm_clock_max_mhz=_most(column("sm_clock_max_mhz")),
        temperature_c=_most(column("temperature_c")),
        throttled={reason: sum(reason in each.reasons for each in seen) / len(seen) for reason in reasons},
        sawtooth=sawtooth(column("busy")),
    )


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _most(values: Sequence) -> float | int | None:
    return max((value for value in values if value is not None), default=None)


def _newest(values: Sequence) -> float | int | None:
    return next((value for value in reversed(values) if value is not None), None)


def _grown(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    return sum(max(0, b - a) for a, b in pairwise(known))


def _share(value: float | None) -> float | None:
    return None if value is None else min(1.0, value)


def _mb(value: float | None) -> float | None:
    return None if value is None else value / _BYTES_PER_MB
