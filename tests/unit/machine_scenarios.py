"""Summaries for rule tests: what the device, other ranks, the machine or the interpreter take."""

from __future__ import annotations

from dataclasses import replace

import compute_scenarios as c
import scenarios as s

from trainflash.schema import (
    Collections,
    Communication,
    DeviceTime,
    GpuStat,
    HostStat,
    LineCost,
    Location,
    Memory,
    RankStat,
    Summary,
    SyncPoint,
    Telemetry,
)

GPU = c.GPU
METRIC = Location("metrics.py", 9, "accuracy")
COLLECT = Location("train.py", 58, "main")
WRAP = Location("train.py", 29, "main")
COMPUTE_MS = {"Data": 0.3, "Fwd": 3.5, "Bwd": 5.0, "Opt": 1.0, "Other": 0.2}


def on_gpu(summary: Summary, *, busy: float | None = 0.97, lag: float = 0.5) -> Summary:
    """The same run on a GPU; `busy` None: without device times."""
    if busy is None:
        return replace(summary, device=GPU, timeline="host")
    times = DeviceTime(steps=summary.steps, busy_share=busy, lag_ms=lag * s.STEP_MS, lag_share=lag, dropped=0)
    return replace(summary, device=GPU, timeline="device", device_time=times)


def reading_tensors(share: float = 0.3, *, on_device: bool = False, phase: str = "Other", call: str = "item") -> Summary:
    """A line reads tensors element by element for the part `share` of the time."""
    found = s.run(**{phase: share}) if phase not in s.COMPUTE else s.run()
    point = SyncPoint(METRIC, call, 40_000, 0.03, share, on_device, phase)
    line = LineCost("main", phase, METRIC, share)
    return replace(found, sync_points=(point,), lines=(line,))


def collecting(share: float = 0.3, *, called: int = 400) -> Summary:
    """The program calls `gc.collect()` in each step; `called` 0: collections come by themselves."""
    location = COLLECT if called else None
    found = Collections(max(called, 500), max(called, 3), share, 7.5, called, location)
    lines = (LineCost("main", "Other", COLLECT, share),) if called else ()
    return replace(s.run(Other=share) if called else s.run(), collections=found, lines=lines)


def host(**changes) -> HostStat:
    """A quiet machine with two cores."""
    plain = HostStat(
        samples=40,
        cpus=2.0,
        cpu_used=1.0,
        throttled_share=0.0,
        throttled_periods=0,
        pressure_cpu=0.0,
        load=1.0,
        memory_used_bytes=500_000_000,
        memory_limit_bytes=8_000_000_000,
        memory_events=0,
        swap_used_bytes=0,
        disk_read_mb_s=0.0,
        disk_write_mb_s=0.0,
        read_mb_s=1.0,
        network_mb_s=0.0,
        shm_used_bytes=0,
        shm_total_bytes=64_000_000,
        processes=1,
    )
    return replace(plain, **changes)


def gpu(**changes) -> GpuStat:
    """A GPU that is busy, cool and at full clock."""
    plain = GpuStat(
        index=0,
        name="NVIDIA H200",
        samples=40,
        busy=0.97,
        memory_busy=0.5,
        memory_used_bytes=40_000_000_000,
        memory_total_bytes=141_000_000_000,
        pcie_rx_mb_s=900.0,
        pcie_tx_mb_s=100.0,
        power_w=600.0,
        power_limit_w=700.0,
        sm_clock_mhz=1950.0,
        sm_clock_max_mhz=1980.0,
        temperature_c=60.0,
    )
    return replace(plain, **changes)


def stopped_by_quota(share: float | None = 0.3) -> Summary:
    return replace(s.healthy(), telemetry=Telemetry(0.5, host(throttled_share=share, throttled_periods=90)))


def hot_gpu(clock_mhz: float = 1300.0, *, reason: str = "hw_thermal", part: float = 0.9) -> Summary:
    """A GPU whose clock is lowered for the part `part` of the samples."""
    stat = gpu(sm_clock_mhz=clock_mhz, temperature_c=87.0, throttled={reason: part})
    return on_gpu(replace(s.healthy(), telemetry=Telemetry(0.5, host(), (stat,))))


def emptying_the_cache(share: float = 0.3) -> Summary:
    at = Location("train.py", 60, "main")
    facts = Memory(empty_cache_calls=400, empty_cache_share=share, empty_cache_at=at)
    line = LineCost("main", "Other", at, share)
    return replace(on_gpu(s.run(Other=share), busy=0.6), memory=facts, lines=(line,))


def stalled_for_memory(share: float | None = 0.3) -> Summary:
    return replace(s.healthy(), memory=c.memory(0.97, pressure_share=share, limit_events=12))


def rank(number: int, **own_ms: float) -> RankStat:
    """A rank with the usual own times but for `own_ms`; all ranks' steps last 15 ms."""
    own = COMPUTE_MS | own_ms
    return RankStat(number, "node-a", 15.0, dict(own), own, 15.0 - sum(own.values()), s.STEPS)


def late_rank(number: int = 1, *, ranks: int = 2, phase: str = "Bwd", ms: float = 10.0) -> Summary:
    """Rank `number` needs `ms` in `phase`; rank 0, whose phases are shown, waits for it in backward unless it is the late one."""
    stats = tuple(rank(each, **({phase: ms} if each == number else {})) for each in range(ranks))
    found = s.run(**{phase: 0.45}) if number == 0 and phase not in s.COMPUTE else s.run()
    return replace(found, ranks=ranks, processes=ranks, rank_stats=stats)


def talking_ranks(share: float = 0.4, **changes) -> Summary:
    """Two equal ranks under DDP that exchange gradients for the part `share` of the time."""
    plain = Communication("gloo", "DDP", share, share * s.STEP_MS, 4.0, 40e6, 0.2, wait_share=0.1, syncs_per_step=1.0, location=WRAP)
    return replace(s.run(), ranks=2, processes=2, communication=replace(plain, **changes), rank_stats=(rank(0), rank(1)))


def launching(*, lag: float = 0.01, operators: float = 3000.0, waits: float = 0.0) -> Summary:
    """A GPU that waits for the host, which launches many tiny kernels."""
    found = replace(s.healthy(), operators=c.operators(per_step=operators, kernels_per_step=operators), numerics=c.numerics())
    point = SyncPoint(METRIC, "item", 400, waits * s.STEP_MS, waits, True, "Other")
    stat = gpu(busy=0.99, power_w=180.0)
    telemetry = Telemetry(0.5, host(), (stat,))
    return on_gpu(replace(found, sync_points=(point,) if waits else (), telemetry=telemetry), busy=0.8, lag=lag)


def full_float32(**changes) -> Summary:
    """A transformer in full float32 on a GPU that is busy."""
    facts = c.numerics(**({"capability": (9, 0)} | changes))
    return on_gpu(replace(s.healthy(), numerics=facts, operators=c.operators()))


def half_precision_cnn(**changes) -> Summary:
    """A CNN under bf16 autocast with NCHW inputs of one shape on a GPU that is busy."""
    plain = {"capability": (9, 0), "autocast": "bfloat16", "convolutions": 20, "channels_last": False}
    return on_gpu(replace(s.healthy(), numerics=c.numerics(**(plain | changes)), operators=c.operators(), input_shapes=1))


def searching_algorithms(shapes: int = 40, *, usual: float = 0.4) -> Summary:
    """cudnn.benchmark is on and each step has a new shape; the median forward takes the part `usual` of the mean one."""
    found = on_gpu(replace(s.healthy(), numerics=c.numerics(cudnn_benchmark=True, convolutions=20), input_shapes=shapes))
    fwd = s.phase(found.phases["Fwd"].share, p50_of_mean=usual)
    return replace(found, phases=found.phases | {"Fwd": fwd})
