"""When there is no diagnosis to trust: why, and what would make one possible."""

from __future__ import annotations

from dataclasses import dataclass

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.claims import Claim, shown
from trainflash.diagnosis.lines import lines_in
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds

MARKS = (
    "mark the phases by hand; both lines do nothing without the probe:\n"
    "try: from trainflash_probe import phase\n"
    "except ImportError: from contextlib import nullcontext as phase\n"
    'then: with phase("Data"): batch = next_batch()   (phases: Data, H2D, Fwd, Bwd, Opt, Eval, Ckpt, Log)'
)


@dataclass(frozen=True)
class Abstention:
    """Why there is no diagnosis, in one sentence, and what to do about it, most helpful first."""

    reason: str
    advice: tuple[str, ...]


def abstention(signals: Signals, rivals: list[Claim], limits: Thresholds) -> Abstention | None:
    """None where the findings can be trusted."""
    return _too_few(signals, limits) or _unknown_loop(signals, rivals, limits) or _no_core(signals, rivals, limits)


def _too_few(signals: Signals, limits: Thresholds) -> Abstention | None:
    summary = signals.summary
    if summary.steps >= limits.min_steps or few_but_long(signals, limits):
        return None
    why = "let it run longer" if summary.stopped else "the program ended by itself: give it more steps or epochs"
    reason = f"only {summary.steps} steps after warm-up, at least {limits.min_steps} are needed; {why}"
    if summary.stopped:
        return Abstention(reason, (f"{_more_steps(signals, limits)} lets the program run on",))
    return Abstention(
        reason, (f"run the program with more steps or epochs: {_steps(signals, limits)} steps show a usual one and its tails",)
    )


def few_but_long(signals: Signals, limits: Thresholds) -> bool:
    """Whether so few steps are long enough for their lines to be sampled well: places need samples, not steps."""
    summary = signals.summary
    long = summary.sampled_s is not None and summary.sampled_s >= limits.few_steps_s
    return limits.fewest_steps <= summary.steps < limits.min_steps and long


def _unknown_loop(signals: Signals, rivals: list[Claim], limits: Thresholds) -> Abstention | None:
    top = max((claim.weight for claim in rivals), default=0.0)
    named = sum(
        claim.finding.share for claim in rivals if claim.phases == ("Other",) and claim.finding.kind not in ("host_code", "startup")
    )
    explained = signals.other_in_lines if signals.other_in_lines is not None else min(signals.other, named)
    unexplained = signals.other - explained
    if unexplained <= max(limits.unexplained, top):
        return None
    without_lines = signals.other_in_lines is None
    means = "line samples were off: sample lines" if without_lines else "mark it with `with phase(...)`"
    reason = f"{shown(unexplained)} of the time is in no phase and in no line of the project's code, more than any cost found; {means}"
    advice = (MARKS,)
    if without_lines:
        advice = ("run again with line samples on: they name the lines of the project that take the time", *advice)
    if signals.fwd_bwd is None:
        advice = ("no forward or backward was recognised: is this the process that trains?", *advice)
    return Abstention(reason, advice)


def _no_core(signals: Signals, rivals: list[Claim], limits: Thresholds) -> Abstention | None:
    """Stalls of a busy machine fall on any line: those on a line that runs a phase are no code between the phases."""
    waited = signals.threads.runqueue_share if signals.threads is not None else None
    top = max(rivals, key=lambda claim: claim.weight, default=None)
    if waited is None or waited < limits.no_core or top is None or top.finding.kind != "host_code" or top.phases != ("Other",):
        return None
    if not any(line.location == top.finding.location for phase in COMPUTE for line in lines_in(signals.summary, phase)):
        return None
    reason = f"the training thread had no core for {shown(waited)} of the time, so its stalls look like code between the phases"
    return Abstention(reason, ("end what else runs on this machine, and run again",))


def _steps(signals: Signals, limits: Thresholds) -> int:
    """Enough for the percentiles and for the warm-up that this run had."""
    return max(10 * limits.min_steps, 2 * (signals.summary.steps + signals.summary.warmup_steps))


def _more_steps(signals: Signals, limits: Thresholds) -> str:
    return f"trainflash diagnose --steps {_steps(signals, limits)} -- CMD"
