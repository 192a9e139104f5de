"""Measured steps → `metrics.json`: the same figures from a step function and from an unmodified program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trainflash import stats
from trainflash.errors import Inconclusive, ProgramFailed, UsageError
from trainflash.gate.config import BenchConfig
from trainflash.gate.measure import flops
from trainflash.gate.measure.flops import Work
from trainflash.schema import GateEnv, GateLine, GateMetrics, GatePhase, Scaling, Stall, StepTimes

STALL_LIMIT = 0.05  # of a step: what the gate's own default tolerance (5 % of the throughput) would call a regression
LEAST_FOR_SLOPE = 10  # losses; fewer show the batches, not the training


@dataclass(frozen=True)
class Measurement:
    """Everything that one benchmark saw. `work` and `samples` are of one step of one process; `live_ms` and `replayed_ms` are steps with
    the real loader and with replayed batches, measured in turn, one tuple a block. `tokens_given`: of all processes together."""

    source: str
    repeats: tuple[StepTimes, ...]
    processes: int
    work: Work
    samples: float | None
    device: str
    dtype: str | None
    memory_of: str | None
    tokens_given: float | None = None
    tokens_from: str | None = None
    command: tuple[str, ...] = ()
    live_ms: tuple[tuple[float, ...], ...] = ()
    replayed_ms: tuple[tuple[float, ...], ...] = ()
    phases: dict[str, GatePhase] = field(default_factory=dict)
    lines: tuple[GateLine, ...] = ()
    profile_dir: str | None = None
    regions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def build(found: Measurement, config: BenchConfig, env: GateEnv) -> GateMetrics:
    """The document. Raises `Inconclusive` for no step, `ProgramFailed` for a time or loss that is no number."""
    steps = [step for repeat in found.repeats for step in repeat.step_ms]
    if not steps:
        raise Inconclusive("no step was measured", "let the training run for more steps, or measure with fewer warm-up steps")
    if not all(math.isfinite(step) and step > 0 for step in steps):
        raise ProgramFailed("a step's time is not a positive number", "measure again")
    losses = [loss for repeat in found.repeats for _, loss in repeat.losses]
    if not all(map(math.isfinite, losses)):
        raise ProgramFailed("a loss of the measured steps is not a number: the training diverged", "make it train by hand first")
    mean, p50, p90 = float(np.mean(steps)), stats.quantile(steps, 0.5), stats.quantile(steps, 0.9)
    tokens = found.tokens_given
    if tokens is None and found.work.tokens is not None:
        tokens = found.work.tokens * found.processes
    samples = None if found.samples is None else found.samples * found.processes
    work = found.work if tokens is None else _with_tokens(found.work, tokens / found.processes)
    accelerator = next((each.name for each in env.accelerators), None) if found.device != "cpu" else None
    operations = flops.estimate(
        work,
        estimator=config.mfu_estimator,
        processes=found.processes,
        step_ms=(p50, mean),
        accelerator=accelerator,
        dtype=found.dtype,
        peak_tflops=config.peak_tflops,
    )
    memory = [repeat.memory_peak_bytes for repeat in found.repeats]
    notes = list(found.notes)
    if operations.reason:
        notes.append(operations.reason)
    share = flops.mfu_p50(operations, found.processes)
    if share is not None and share > 1:
        notes.append(f"an MFU of {share:.0%} cannot be: the peak, the tokens of a step or the parameters are not what they were taken for")
    if p90 is None:
        notes.append(f"{len(steps)} steps are too few for p90; it needs {stats.steps_for(0.9)}")
    return GateMetrics(
        machine_profile=env.machine_profile,
        commit=env.commit,
        dirty=env.dirty,
        source=found.source,  # type: ignore[arg-type]
        command=found.command,
        mode=config.mode,
        world_size=found.processes,
        warmup_steps=config.warmup_steps,
        measure_steps=max(len(repeat.step_ms) for repeat in found.repeats),
        repeats=found.repeats,
        step_time_mean_ms=mean,
        step_time_p50_ms=p50,
        step_time_p90_ms=p90,
        tokens_per_step=tokens,
        samples_per_step=samples,
        tokens_from="given" if found.tokens_given is not None else found.tokens_from if tokens is not None else None,
        tokens_per_sec_mean=_rate(tokens, mean),
        tokens_per_sec_p50=_rate(tokens, p50),
        tokens_per_sec_p10=_rate(tokens, p90),  # the throughput that nine steps in ten reach
        samples_per_sec_mean=_rate(samples, mean),
        samples_per_sec_p50=_rate(samples, p50),
        samples_per_sec_p10=_rate(samples, p90),
        memory_peak_bytes=None if any(each is None for each in memory) else max(memory),  # type: ignore[type-var]
        memory_of=found.memory_of,  # type: ignore[arg-type]
        loss_slope=slope(found.repeats),
        loss_first=losses[0] if losses else None,
        loss_last=losses[-1] if losses else None,
        mfu_p50=share,
        flops=operations,
        stall=stall(found.live_ms, found.replayed_ms),
        phases=found.phases,
        lines=found.lines,
        profile_dir=found.profile_dir,
        regions=found.regions,
        notes=tuple(dict.fromkeys(notes)),
    )


def slope(repeats: Sequence[StepTimes]) -> float | None:
    """Change of the loss a step: least squares over each repeat's losses, the mean of the repeats; None for too few losses."""
    found = []
    for repeat in repeats:
        if len(repeat.losses) >= LEAST_FOR_SLOPE:
            at, loss = np.array([at for at, _ in repeat.losses], dtype=float), np.array([loss for _, loss in repeat.losses])
            away = at - at.mean()
            if (spread := float((away**2).sum())) > 0:
                found.append(float((away * (loss - loss.mean())).sum()) / spread)
    return float(np.mean(found)) if found else None


def stall(live_ms: Sequence[Sequence[float]], replayed_ms: Sequence[Sequence[float]]) -> Stall | None:
    """What waiting for data costs a step, from pairs of neighbouring blocks; None for fewer pairs than a comparison needs starts."""
    pairs = [
        (float(np.median(live)), float(np.median(replayed)))
        for live, replayed in zip(live_ms, replayed_ms, strict=False)
        if live and replayed
    ]
    if len(pairs) < stats.LEAST_STARTS:
        return None
    seen = stats.interval([math.log(live / replayed) for live, replayed in pairs])
    share, low, high = (-math.expm1(-y) for y in (seen.mean, seen.low, seen.high))
    live, replayed = (float(np.median([each[side] for each in pairs])) for side in (0, 1))
    return Stall(live, replayed, share, low, high, STALL_LIMIT, low > STALL_LIMIT)


def scaling(one: GateMetrics, several: GateMetrics) -> Scaling:
    """How much of the added processes' power became throughput."""
    for unit in ("tokens", "samples"):
        before, after = (getattr(each, f"{unit}_per_sec_p50") for each in (one, several))
        if before and after:
            return Scaling(several.world_size, after / (several.world_size * before), before, after, unit)  # type: ignore[arg-type]
    return Scaling(several.world_size, None, None, None, "steps")


def world_size(config: BenchConfig, env: GateEnv) -> int:
    """How many processes to train with. Raises `UsageError` for more than there are accelerators."""
    there = len(env.accelerators)
    if config.world_size == -1:
        return max(1, there)
    if there and config.world_size > there:
        raise UsageError(
            f"world_size is {config.world_size}, but this machine has {there} accelerator{'s' if there > 1 else ''}",
            "run it where there are enough, or with --world-size -1 for all that there are",
        )
    return config.world_size


def regions_in(folder: Path, known: Sequence[str]) -> tuple[str, ...]:
    """Those of the `known` regions that the traces in `folder` hold."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.json"))]
    return tuple(name for name in known if any(f'"name": "{name}"' in text for text in texts))


def _with_tokens(work: Work, tokens: float) -> Work:
    return Work(tokens, work.parameters, work.non_embedding, work.multiplying, work.attention, work.counted)


def _rate(amount: float | None, step_ms: float | None) -> float | None:
    return None if amount is None or not step_ms else amount / (step_ms / 1e3)
