"""Rules about the machine and the interpreter: thread_oversubscription, throttling, memory_pressure, garbage_collection."""

from __future__ import annotations

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.census import LEAST_MS
from trainflash.diagnosis.claims import Claim, at, claim, count, megabytes, milliseconds, percent, shown
from trainflash.diagnosis.input_signals import made_among_threads
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, GpuStat, HostStat, Memory

MOSTLY = 0.7  # own: of the long collections' time, before a phase is theirs


def thread_oversubscription(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """More compute threads than cores, or several that keep losing theirs (T3). Abstains when threads or the CPU budget are unknown.

    Threads of all ranks count, and of data workers the cores that they keep busy. `share` is a lower estimate: the part of computing for
    which there were no cores, 1 − cores ÷ threads, or the time without a core. Batches that operators make in the training process, such
    as rollouts, are computed too. Threads that use no CPU stand in nobody's way.
    """
    threads, compute = signals.threads, signals.compute
    if threads is None or threads.torch_threads is None or threads.cpus is None or compute is None or threads.torch_threads < 2:
        return ()
    making = made_among_threads(signals.summary, limits)
    own = threads.torch_threads * signals.summary.ranks
    workers = _busy_workers(signals) * signals.summary.ranks
    waiting = threads.runqueue_share
    spread = _compute_spread(signals)
    stolen = waiting is not None and waiting >= limits.runqueue_wait
    if own > limits.threads_over * threads.cpus and (stolen or _uses_its_budget(signals, limits) is not False):
        share = (compute + making) * (1 - threads.cpus / own)
    elif own + workers > limits.threads_over * threads.cpus and workers > 0 and stolen:
        share = compute * min(waiting or 0.0, 1 - threads.cpus / (own + workers))
    elif stolen and spread is not None and spread >= limits.threads_spread:
        share = compute * (waiting or 0.0)
    else:
        return ()
    if share < limits.listed:
        return ()
    rows = [
        count("compute threads", own),
        count("cores in the budget", threads.cpus),
        percent("computing, share of wall time", compute + making),
        Evidence("OMP_NUM_THREADS", threads.omp_num_threads or "not set"),
    ]
    if workers > 0:
        rows.append(count("cores kept busy by data workers", workers))
    if waiting is not None:
        rows.append(percent("time without a core", waiting))
    if spread is not None:
        rows.append(count("95th percentile ÷ median of forward and backward", spread))
    host = _host(signals)
    if host is not None and host.throttled_share is not None:
        rows.append(percent("time stopped by the CPU quota", host.throttled_share))
    return (
        claim(
            "thread_oversubscription",
            "Fwd",
            "host",
            share,
            limits,
            phases=(*COMPUTE, "Data") if making else COMPUTE,
            summary=f"{own} compute threads share {threads.cpus:g} cores and wait for each other{at(threads.set_at)}",
            evidence=rows,
            location=threads.set_at,
            knobs=("torch_threads", "omp_threads", "omp_wait_policy"),
        ),
    )


def throttling(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The machine runs slower than it could: a CPU quota stops the program, or a GPU lowers its clock (T2). Abstains without telemetry.

    A quota that too many threads run into stands beside thread_oversubscription. The GPU's part is not yet proved on one.
    """
    claims = []
    host, compute = _host(signals), signals.compute
    if host is not None and host.throttled_share is not None and host.throttled_share >= limits.listed:
        rows = [percent("time stopped by the CPU quota", host.throttled_share)]
        if host.throttled_periods is not None:
            rows.append(count("periods stopped", host.throttled_periods))
        if host.cpus is not None:
            rows.append(count("cores in the budget", host.cpus))
        if host.cpu_used is not None:
            rows.append(count("cores used", host.cpu_used))
        claims.append(
            claim(
                "throttling",
                "Other",
                "host",
                host.throttled_share,
                limits,
                phases=(),
                summary=f"the CPU quota stops the program for {shown(host.throttled_share)} of the time",
                evidence=rows,
                inside="thread_oversubscription",
            )
        )
    for gpu in signals.summary.telemetry.gpus if signals.summary.telemetry is not None else ():
        lost = _clock_lost(gpu)
        reasons = {name: part for name, part in gpu.throttled.items() if part >= limits.throttled_samples}
        if lost is None or lost < limits.clock_lost or not reasons or compute is None:
            continue
        share = compute * lost * min(1.0, max(reasons.values()))
        if share >= limits.listed:
            claims.append(_gpu_throttled(gpu, lost, reasons, share, limits))
    return tuple(claims)


def memory_pressure(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Time goes into getting memory: emptied caches, retried allocations, reclaiming, swapping. Abstains where none of it was measured.

    Allocation retries (not yet proved on a GPU) are charged with what steps take above their median; faults with 0.1 ms each.
    """
    memory, step = signals.summary.memory, signals.summary.step_ms
    if memory is None:
        return ()
    costs: dict[str, float] = {}
    if memory.empty_cache_calls:
        costs["emptying the allocator's cache"] = memory.empty_cache_share
    if memory.pressure_share is not None:
        costs["stalls while memory was reclaimed"] = memory.pressure_share
    if (memory.alloc_retries or 0) >= limits.alloc_retries and step.p50_ms is not None and step.mean_ms > 0:
        costs["allocations that had to be tried again"] = max(0.0, 1 - step.p50_ms / step.mean_ms)
    short = bool(memory.swapped_bytes) or bool(memory.limit_events)
    if short and (memory.major_faults or 0.0) >= limits.major_faults and step.mean_ms > 0:
        costs["page faults from disk"] = min(1.0, (memory.major_faults or 0.0) * limits.fault_ms / step.mean_ms)
    if not costs:
        return ()
    worst = max(costs, key=lambda name: costs[name])
    share = costs[worst]
    if share < limits.listed:
        return ()
    where = memory.empty_cache_at if worst.startswith("emptying") else None
    return (
        claim(
            "memory_pressure",
            "Other",
            "device" if worst.startswith("allocations") else "host",
            share,
            limits,
            phases=() if where is None else ("Other",),
            summary=f"{worst} takes {shown(share)} of the time{at(where)}",
            evidence=(*(percent(f"{name}, share of wall time", part) for name, part in costs.items()), *_memory_evidence(memory)),
            location=where,
        ),
    )


def garbage_collection(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Python's garbage collector stops training. Abstains where collections were not timed, and where one full one says all.

    That one looks at everything that torch has loaded, in any program; how often they come is known from the second one on.
    """
    found = signals.summary.collections
    if found is None or found.share < limits.listed:
        return ()
    if found.full == 1 and not found.called and found.count < limits.collections_many:
        return ()
    by = f", {found.called} of them called by the program{at(found.location)}" if found.called else ""
    phase = collections_phase(signals)
    return (
        claim(
            "garbage_collection",
            phase or "Other",
            "host",
            found.share,
            limits,
            phases=() if phase is None else (phase,),
            summary=f"{found.count} garbage collections take {shown(found.share)} of the time{by}",
            evidence=(
                percent("share of wall time", found.share),
                count("collections", found.count),
                count("full collections", found.full),
                count("called by the program", found.called),
                milliseconds("mean each", found.mean_ms),
                *(percent(f"long ones in {each.phase}{at(each.location)}", each.share) for each in found.struck if each.share >= 0.01),
            ),
            location=found.location or (found.struck[0].location if found.struck else None),
            knobs=("gc_collect_off",) if found.called else ("gc_threshold",),
        ),
    )


def collections_phase(signals: Signals) -> str | None:
    """The phase that collections lie in: the program's own `gc.collect()` by samples of its line, others where most long ones came.

    None: unknown, or in no phase more than in others.
    """
    found = signals.summary.collections
    if found is None:
        return None
    if found.location is None:
        phases: dict[str, float] = {}
        for each in found.struck:
            phases[each.phase] = phases.get(each.phase, 0.0) + each.share
        most = max(phases, key=lambda phase: phases[phase], default=None)
        return most if most is not None and phases[most] >= MOSTLY * found.share else None
    here = [
        line
        for line in signals.summary.lines
        if line.role == "main" and (line.location.file, line.location.line) == (found.location.file, found.location.line)
    ]
    return max(here, key=lambda line: line.share).phase if here else None


def _busy_workers(signals: Signals) -> float:
    """Cores that the data workers of this rank keep busy on average."""
    loader = signals.loader
    step = signals.summary.step_ms.mean_ms
    if loader is None or loader.num_workers == 0 or loader.getitem_ms is None or loader.fetch_cpu_share is None or step <= 0:
        return 0.0
    making = loader.getitem_ms.mean_ms + (loader.collate_ms.mean_ms if loader.collate_ms is not None else 0.0)
    return min(float(loader.num_workers), making * loader.fetch_cpu_share / step)


def _uses_its_budget(signals: Signals, limits: Thresholds) -> bool | None:
    """Whether the program's processes used up most of the cores that they may use; None: not measured."""
    threads, host = signals.threads, _host(signals)
    if threads is None or threads.cpus is None or threads.cpus <= 0:
        return None
    if host is not None and host.throttled_share is not None and host.throttled_share >= limits.listed:
        return True
    if threads.cpu_seconds is None or not threads.wall_seconds:
        return None
    used = threads.cpu_seconds / threads.wall_seconds * signals.summary.ranks
    return used >= limits.threads_used * threads.cpus


def _compute_spread(signals: Signals) -> float | None:
    """95th percentile ÷ median of forward and backward, each taken alone and added; None when there are too few steps for it."""
    stats = [signals.summary.phases[name] for name in ("Fwd", "Bwd") if name in signals.summary.phases]
    if not stats or any(stat.p50_ms is None or stat.p95_ms is None for stat in stats):
        return None
    usual = sum(stat.p50_ms for stat in stats)
    return sum(stat.p95_ms for stat in stats) / usual if usual > LEAST_MS else None


def _gpu_throttled(gpu: GpuStat, lost: float, reasons: dict[str, float], share: float, limits: Thresholds) -> Claim:
    rows = [percent(f"samples slowed by {name.replace('_', ' ')}", part) for name, part in reasons.items()]
    rows.append(percent("clock below its maximum", lost))
    if gpu.temperature_c is not None:
        rows.append(count("hottest", gpu.temperature_c, "°C"))
    if gpu.power_w is not None:
        rows.append(count("power", gpu.power_w, "W"))
    return claim(
        "throttling",
        "Fwd",
        "device",
        share,
        limits,
        phases=COMPUTE,
        summary=f"GPU {gpu.index} ({gpu.name}) runs {shown(lost)} below its clock: {', '.join(reasons).replace('_', ' ')}",
        evidence=rows,
    )


def _clock_lost(gpu: GpuStat) -> float | None:
    if gpu.sm_clock_mhz is None or not gpu.sm_clock_max_mhz:
        return None
    return max(0.0, 1 - gpu.sm_clock_mhz / gpu.sm_clock_max_mhz)


def _memory_evidence(memory: Memory) -> list[Evidence]:
    counts = (
        ("empty_cache calls", memory.empty_cache_calls or None),
        ("allocation retries", memory.alloc_retries),
        ("times at the memory limit", memory.limit_events),
        ("major faults per step", memory.major_faults),
    )
    sizes = (
        ("peak of the process", memory.host_peak_bytes),
        ("memory limit", memory.host_limit_bytes),
        ("swapped out", memory.swapped_bytes),
        ("peak on the device", memory.device_peak_bytes),
        ("memory of the device", memory.device_total_bytes),
    )
    rows = [count(name, value) for name, value in counts if value is not None]
    return rows + [megabytes(name, value) for name, value in sizes if value is not None]


def _host(signals: Signals) -> HostStat | None:
    return signals.summary.telemetry.host if signals.summary.telemetry is not None else None
