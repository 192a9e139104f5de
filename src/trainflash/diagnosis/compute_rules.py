"""Rules about the computing itself: debug_api, thread_oversubscription, optimizer, padding."""

from __future__ import annotations

from trainflash.diagnosis.claims import Claim, bound, count, milliseconds, percent, severity, shown
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Ceiling, Evidence, Finding

SETTING_WORDS = {
    "anomaly_mode": "autograd's anomaly mode",
    "profiler": "a profiler",
    "gradcheck": "gradcheck",
    "blocking_launches": "CUDA_LAUNCH_BLOCKING",
}
KNOBS = {"anomaly_mode": "anomaly_off", "profiler": "profiler_off"}


def debug_api(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """A debugging aid is on while training (T12). Abstains without forward and backward.

    How much of forward and backward it costs cannot be read from one run: `share` is the part that a factor of `anomaly_factor` would
    cost, on the low side; the ceiling takes the documented factor. It is ranked by all of forward and backward, because they are
    multiplied by it: it comes first unless something else takes longer than they do.
    """
    work = signals.fwd_bwd
    if not signals.debug or work is None:
        return ()
    settings = [item for item in signals.debug if item.name != "blocking_launches" or signals.on_gpu]
    if not settings:
        return ()
    share = work * (1 - 1 / limits.anomaly_factor)
    most = work * (1 - 1 / limits.anomaly_factor_most)
    if most < limits.dominant:
        return ()
    first = next((item for item in settings if item.location is not None), settings[0])
    names = " and ".join(SETTING_WORDS[item.name] for item in settings)
    where = f", switched on at {first.location}" if first.location is not None else ""
    finding = Finding(
        kind="debug_api",
        phase="Bwd" if signals.share("Bwd") else "Fwd",
        bound_by="host",
        share=share,
        severity=severity(most, limits),
        summary=f"{names} slows forward and backward, {shown(work)} of the time{where}",
        evidence=(
            *(Evidence(item.name, item.value) for item in settings),
            percent("forward and backward, share of wall time", work),
            Evidence("share is an estimate", f"a factor of {limits.anomaly_factor:g}; documented is about {limits.anomaly_factor_most:g}"),
        ),
        location=first.location,
        ceiling=Ceiling(bound(most).speedup, "bound"),
        knobs=tuple(KNOBS[item.name] for item in settings if item.name in KNOBS),
    )
    return (Claim(finding, work),)


def thread_oversubscription(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """More compute threads than cores, or several that keep losing theirs. Abstains when threads or the CPU budget are unknown.

    `share` is a lower estimate: the part of computing for which there were no cores, 1 − cores ÷ threads, or the time without a core.
    """
    threads, compute = signals.threads, signals.compute
    if threads is None or threads.torch_threads is None or threads.cpus is None or compute is None or threads.torch_threads < 2:
        return ()
    wanted = threads.torch_threads * signals.summary.ranks
    waiting = threads.runqueue_share
    spread = _compute_spread(signals)
    if wanted > limits.threads_over * threads.cpus:
        share = compute * (1 - threads.cpus / wanted)
    elif waiting is not None and waiting >= limits.runqueue_wait and spread is not None and spread >= limits.threads_spread:
        share = compute * waiting
    else:
        return ()
    if share < limits.listed:
        return ()
    rows = [
        count("compute threads", wanted),
        count("cores in the budget", threads.cpus),
        percent("computing, share of wall time", compute),
        Evidence("OMP_NUM_THREADS", threads.omp_num_threads or "not set"),
    ]
    if waiting is not None:
        rows.append(percent("time without a core", waiting))
    if spread is not None:
        rows.append(count("95th percentile ÷ median of forward and backward", spread))
    finding = Finding(
        kind="thread_oversubscription",
        phase="Fwd",
        bound_by="host",
        share=share,
        severity=severity(share, limits),
        summary=f"{wanted} compute threads share {threads.cpus:g} cores and wait for each other",
        evidence=tuple(rows),
        location=threads.set_at,
        ceiling=bound(share),
        knobs=("torch_threads",),
    )
    return (Claim(finding, share),)


def optimizer(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The optimizer's update takes a large part of the step. Ranked by what a fused update can save of it."""
    share = signals.share("Opt")
    if share is None or share < limits.optimizer:
        return ()
    finding = Finding(
        kind="optimizer",
        phase="Opt",
        bound_by="device" if signals.on_gpu else "host",
        share=share,
        severity=severity(share * limits.optimizer_saving, limits),
        summary=f"the optimizer's update takes {shown(share)} of the time",
        evidence=(percent("share of wall time", share), milliseconds("mean per step", signals.summary.phases["Opt"].mean_ms)),
        location=None,
        ceiling=bound(share),
        knobs=("optimizer_foreach", "optimizer_fused"),
    )
    return (Claim(finding, share * limits.optimizer_saving),)


def padding(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Forward and backward work on padding. Abstains where inputs were not looked at."""
    padded, work = signals.summary.padding_share, signals.fwd_bwd
    if padded is None or work is None or padded < limits.padding or padded * work < limits.dominant:
        return ()
    share = padded * work
    rows = [percent("padding in the inputs", padded), percent("forward and backward, share of wall time", work)]
    if signals.summary.input_shapes is not None:
        rows.append(count("distinct input shapes", signals.summary.input_shapes))
    finding = Finding(
        kind="padding",
        phase="Fwd",
        bound_by="device" if signals.on_gpu else "host",
        share=share,
        severity=severity(share, limits),
        summary=f"{shown(padded)} of the inputs is padding, so that about {shown(share)} of the time is spent on it",
        evidence=tuple(rows),
        location=signals.data.loader.location if signals.data is not None and signals.data.loader is not None else None,
        ceiling=bound(share),
        knobs=(),
    )
    return (Claim(finding, share),)


def _compute_spread(signals: Signals) -> float | None:
    """95th percentile ÷ median of forward and backward, each taken alone and added; None when there are too few steps for it."""
    stats = [signals.summary.phases[name] for name in ("Fwd", "Bwd") if name in signals.summary.phases]
    if not stats or any(stat.p50_ms is None or stat.p95_ms is None for stat in stats):
        return None
    usual = sum(stat.p50_ms for stat in stats)
    return sum(stat.p95_ms for stat in stats) / usual if usual > 0 else None
