"""Rules about feeding the device: h2d, sync_point, launch_overhead, and host_code inside the network."""

from __future__ import annotations

from dataclasses import replace

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.census import explained, fixed_costs, mean_operator_us, usual_each_us
from trainflash.diagnosis.claims import Claim, at, claim, count, megabytes, milliseconds, percent, shown
from trainflash.diagnosis.input_rules import BESIDE
from trainflash.diagnosis.lines import Sync, hottest, messages_for_nobody, same_line
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, GpuStat


def h2d(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Copies to the device block the step (T6). Abstains without a GPU or without the phase. Not yet proved on a GPU."""
    share = signals.share("H2D")
    if not signals.on_gpu or share is None or share < limits.listed:
        return ()
    loader = signals.loader
    stat = signals.summary.phases["H2D"]
    rows = [
        percent("share of wall time", share),
        milliseconds("mean per step", stat.mean_ms),
        Evidence("pin_memory", "not a DataLoader" if loader is None else "on" if loader.pin_memory else "off"),
    ]
    if stat.device_ms is not None:
        rows.append(milliseconds("copying on the device, per step", stat.device_ms))
    if loader is not None and loader.sample_bytes is not None and loader.batch_size is not None:
        rows.append(megabytes("size of a batch", loader.sample_bytes * loader.batch_size))
    unpinned = loader is not None and not loader.pin_memory
    line = signals.hottest("H2D")
    return (
        claim(
            "h2d",
            "H2D",
            "host",
            share,
            limits,
            summary=f"copies from host to device hold the step up for {shown(share)} of the time",
            evidence=rows,
            location=loader.location if loader is not None and (unpinned or line is None) else line,
            knobs=("pin_memory",) if unpinned else (),
        ),
    )


def sync_point(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Lines that wait for the device or copy tensors to the host (T20, T23), by what they cost.

    Off a device a call costs its own time only. On a device waiting is no loss by itself, the device works meanwhile: at most its idle
    time is, so without device times the rule abstains (that part is not yet proved on a GPU).
    """
    claims = []
    for sync in signals.syncs:
        if sync.calls == "empty_cache":
            continue  # memory_pressure tells that
        if sync.on_device and signals.device_idle is None:
            continue
        share = min(sync.share, signals.device_idle) if sync.on_device and signals.device_idle is not None else sync.share
        if share < limits.listed:
            continue
        inside = signals.data.name if sync.phase == "Data" and signals.data is not None else BESIDE.get(sync.phase)
        claims.append(
            claim(
                "sync_point",
                sync.phase,
                "host",
                share,
                limits,
                summary=_sync_sentence(sync, share),
                evidence=(
                    percent("share of wall time", sync.share),
                    count(f"calls of {sync.calls}", sync.count),
                    milliseconds("mean each", sync.mean_ms),
                    Evidence("tensors", "on a device: the host waits for it" if sync.on_device else "in host memory"),
                ),
                location=sync.location,
                inside=None if sync.phase == "Other" else inside,
            )
        )
    return tuple(claims)


def launch_overhead(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The step is made of launching many tiny operators, not of their work (T15, T20). Abstains without a census, and with torch.compile.

    On a GPU (not yet proved on one): the device ends each step with the host, the host waits for it nowhere, and utilisation with power
    does not say that it is busy all the same; `share` is half of the computing. On a CPU: very many operators, tiny on average, and less
    than half of the computing inside larger ones; `share` is the rest of the computing.
    """
    operators, compute, numerics = signals.summary.operators, signals.compute, signals.summary.numerics
    if compute:  # texts of tensors are made by tiny operators, too
        compute = max(0.0, compute - sum(line.share for line in messages_for_nobody(signals.summary)))
    mean_us, each_us = mean_operator_us(signals), usual_each_us(signals)
    if operators is None or mean_us is None or each_us is None or not compute or (numerics is not None and numerics.compiled):
        return ()
    rows = [count("operators per step", operators.per_step), count("mean operator", min(mean_us, each_us), "µs")]
    if signals.on_gpu:
        waits = sum(sync.share for sync in signals.syncs if sync.on_device)
        if operators.per_step < limits.launch_operators or signals.host_bound is not True or waits >= limits.host_waits:
            return ()
        if any(_busy(gpu, limits) for gpu in _gpus(signals)):
            return ()
        share = compute * limits.launch_saving
        device = signals.summary.device_time
        if device is not None and device.lag_ms is not None:
            rows.append(milliseconds("device ends a step after the host by", device.lag_ms))
        if operators.kernels_per_step is not None:
            rows.append(count("kernels per step", operators.kernels_per_step))
    else:
        fixed = fixed_costs(signals, limits)
        many = operators.per_step - (operators.optimizer_per_step or 0.0) >= limits.launch_operators_cpu
        tiny = mean_us <= limits.launch_mean_us or each_us <= limits.launch_usual_us
        if not many or not tiny or fixed is None or fixed < limits.launch_covered:
            return ()
        share = compute * fixed
        rows.append(percent("computing outside operators of 20 µs and more", fixed))
    if share < limits.dominant:
        return ()
    where = signals.hottest("Fwd")
    return (
        claim(
            "launch_overhead",
            "Fwd",
            "host",
            share,
            limits,
            phases=COMPUTE,
            summary=f"{operators.per_step:.0f} operators a step, most of them tiny: about {shown(share)} of the time goes into calling them"
            + at(where),
            evidence=rows,
            location=where,
        ),
    )


def python_in_network(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """host_code inside forward or backward: Python that no operator explains.

    Samples of libraries without tensors, where they reach a bottleneck's share. Else computing − operators − 50 µs of Python for each of
    them, no more than recorded calls leave; that abstains without a census or lines, on a GPU, with several ranks (backward waits for
    them) and with torch.compile, whose kernels the census does not see.
    """
    return _libraries(signals, limits) or _unexplained(signals, limits)


def _libraries(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    if signals.on_gpu and signals.host_bound is not True:
        return ()
    called = [line for line in signals.summary.lines if line.role == "main" and line.phase in ("Fwd", "Bwd") and line.in_library]
    lines = [replace(line, share=line.in_library) for line in called]
    where, share = hottest(lines), sum(line.share for line in lines)
    if where is None or share < limits.dominant:
        return ()
    return (
        claim(
            "host_code",
            "Fwd",
            "host",
            share,
            limits,
            phases=("Fwd", "Bwd"),
            summary=f"work of other libraries than torch, inside the network or on its way to the loss, takes {shown(share)} of the time"
            + at(where),
            evidence=(percent("samples in such libraries, share of wall time", share), Evidence("hottest line", str(where))),
            location=where,
        ),
    )


def _unexplained(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    summary = signals.summary
    operators, compute, numerics = summary.operators, signals.compute, summary.numerics
    if operators is None or not compute or signals.on_gpu or summary.ranks > 1 or (numerics is not None and numerics.compiled):
        return ()
    known = explained(signals, limits.python_each_us)
    lines = [line for line in summary.lines if line.role == "main" and line.phase in COMPUTE]
    if known is None or not lines or compute * (1 - known) < limits.python_inside:
        return ()
    where = hottest(lines)
    phase = max(COMPUTE, key=lambda name: sum(line.share for line in lines if line.phase == name and same_line(line.location, where)))
    share = min(compute * (1 - known), signals.share(phase) or 0.0, 1.0 if summary.python_in_network is None else summary.python_in_network)
    if share < limits.python_inside:
        return ()
    return (
        claim(
            "host_code",
            phase,
            "host",
            share,
            limits,
            summary=f"Python inside the network, in hooks or between its operators, takes about {shown(share)} of the time{at(where)}",
            evidence=(
                percent("computing, share of wall time", compute),
                percent("of it operators and their calls", known),
                count("operators per step", operators.per_step),
                Evidence("hottest line", str(where)),
            ),
            location=where,
        ),
    )


def _sync_sentence(sync: Sync, share: float) -> str:
    what = "waits for the device" if sync.on_device else "copies tensors to Python"
    return f"{sync.calls} {what}{at(sync.location)}, {sync.count} times, {shown(share)} of the time"


def _gpus(signals: Signals) -> tuple[GpuStat, ...]:
    return signals.summary.telemetry.gpus if signals.summary.telemetry is not None else ()


def _busy(gpu: GpuStat, limits: Thresholds) -> bool:
    """Whether a GPU is truly busy: utilisation alone lies, power has to agree (T2)."""
    if gpu.busy is None or gpu.power_w is None or not gpu.power_limit_w:
        return False
    return gpu.busy >= limits.device_busy and gpu.power_w >= limits.device_power * gpu.power_limit_w
