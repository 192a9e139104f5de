"""What a reader of the findings has to know beside them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from trainflash.diagnosis.abstention import few_but_long
from trainflash.diagnosis.claims import Claim, shown
from trainflash.diagnosis.memory import memory_used
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Ceiling

SAMPLED_HZ = 50.0  # the probe's own rate


def notes(signals: Signals, rivals: list[Claim], together: Ceiling | None, limits: Thresholds) -> tuple[str, ...]:
    """Sentences, most important first."""
    return (
        *_few_steps(signals, limits),
        *_all_costs(rivals, together),
        *_unused_gradients(signals, limits),
        *_start(signals, limits),
        *_changes(signals, rivals, limits),
        *_outside_steady(signals, limits),
        *_reach(signals),
        *_other_ranks(signals, limits),
        *_machine(signals, limits),
        *_losses(signals),
    )


def _few_steps(signals: Signals, limits: Thresholds) -> list[str]:
    """How sure a diagnosis of few long steps is: twice the standard error of a share of a half among its samples."""
    if not few_but_long(signals, limits) or not signals.summary.sampled_s:
        return []
    points = 100 / (SAMPLED_HZ * signals.summary.sampled_s) ** 0.5
    return [
        f"only {signals.summary.steps} steps after warm-up: shares of lines are within about {points:.0f} points, and what comes once in "
        "many steps (evaluation, checkpoints, a slow sample) may be missing or too large"
    ]


def _all_costs(rivals: list[Claim], together: Ceiling | None) -> list[str]:
    costs = [claim for claim in rivals if claim.finding.kind != "startup"]
    if len(costs) < 2 or together is None:
        return []
    return [
        f"the {len(costs)} costs together are {shown(1 - 1 / together.speedup)} of the time; without all of them "
        f"the program could be at most {together.speedup:.1f} times as fast"
    ]


def _unused_gradients(signals: Signals, limits: Thresholds) -> list[str]:
    """Gradients that backward computes and that no optimizer takes, as of a backbone that is meant to be frozen."""
    updates, share = signals.summary.updates, signals.share("Bwd")
    said = sum(each.share for each in signals.summary.in_vain) >= limits.listed  # as a finding
    if said or updates is None or not updates.graded or not updates.unheld or share is None or share < limits.listed:
        return []
    part = updates.unheld / updates.graded
    if part < limits.unheld:
        return []
    return [
        f"backward ({shown(share)} of the time) computes gradients that no optimizer takes, {shown(part)} of all elements, from "
        f"`{updates.first_unheld}` on; if nothing else reads them, `requires_grad_(False)` there saves this work and its memory"
    ]


def _start(signals: Signals, limits: Thresholds) -> list[str]:
    if signals.startup is None or signals.startup < limits.dominant:
        return []
    return [f"start-up is {shown(signals.startup)} of this whole run; shares are of the steady part after it"]


def _changes(signals: Signals, rivals: list[Claim], limits: Thresholds) -> list[str]:
    """Steps that changed over the window without being a finding: falls, stairs, and a machine that slowed down."""
    trend = signals.summary.trend
    if trend is None or not trend.early_ms or any(claim.finding.kind == "growth" for claim in rivals):
        return []
    ratio = trend.late_ms / trend.early_ms
    if 1 / limits.grown < ratio < limits.grown:
        return []
    told = f"from {trend.early_ms:.1f} ms in the first third of the steady steps to {trend.late_ms:.1f} ms in the last"
    longer = "longer" if ratio > 1 else "shorter"
    if trend.cpu_early_ms and trend.cpu_late_ms is not None:
        by_cpu = trend.cpu_late_ms / trend.cpu_early_ms
        if 1 / limits.grown_cpu < by_cpu < limits.grown_cpu:
            return [f"steps got {longer}, {told}, and their CPU time did not: the machine changed, not the program"]
    return [f"steps got {longer}, {told}{_stair(trend.parts_ms, limits)}: shares are of both together"]


def _stair(parts: tuple[float, ...], limits: Thresholds) -> str:
    """Where nearly all of the change lies between two neighbouring parts of the window."""
    changes = [later - earlier for earlier, later in pairwise(parts)]
    whole = parts[-1] - parts[0]
    largest = max(range(len(changes)), key=lambda place: abs(changes[place]))
    one = changes[largest] * whole > 0 and abs(changes[largest]) >= limits.stair * sum(map(abs, changes))
    return f", in one stair at about {100 * (largest + 1) / len(parts):.0f} % of them" if one else ""


def _outside_steady(signals: Signals, limits: Thresholds) -> list[str]:
    """Evaluations, checkpoints and logs that cost the run much and the steady part little: they fell on warm-up or after the last step."""
    summary, found = signals.summary, []
    for activity in summary.activities:
        steady, seconds = signals.share(activity.phase) or 0.0, activity.count * activity.mean_ms / 1000
        if steady < limits.listed and summary.wall_s > 0 and seconds / summary.wall_s >= limits.dominant:
            found.append(
                f"{activity.phase}: {activity.count} times, {seconds:.1f} s, mostly outside the steady part, so not among the shares"
            )
    return found


def _reach(signals: Signals) -> list[str]:
    """How far the figures reach: which part of the run, which timeline, which ranks."""
    summary, found = signals.summary, []
    if summary.steady is False:
        found.append(
            "step times never settled within the first half of the run; the second half was taken, and near costs are called a tie"
        )
    if signals.on_gpu and summary.timeline == "host":
        found.append("device times were not recorded: a phase's share is what the host spent or waited in it, not what the GPU did")
        waits = sum(sync.share for sync in signals.syncs if sync.on_device)
        if waits > 0:
            found.append(
                f"the host waits {shown(waits)} of the time for the device; whether that costs anything is not known without device times"
            )
    if summary.ranks > 1:
        found.append(f"phases are of rank 0 of {summary.ranks}")
        if len(summary.rank_stats) < 2:
            found.append("the other ranks' own times were not measured: a late rank would not be seen")
    twice = [rank for rank, times in Counter(stat.rank for stat in summary.rank_stats).items() if times > 1]
    if twice:
        found.append(
            f"{len(summary.rank_stats)} processes trained in this run that are not ranks of one job; phases are of the first of them"
        )
    return found


def _other_ranks(signals: Signals, limits: Thresholds) -> list[str]:
    """What other ranks would give, where it is worth a sentence."""
    found = []
    for answer in signals.summary.rank_what_if:
        if answer.name == "double":
            found.append(f"{answer.what} about {answer.speedup:.1f} times the work a second ({answer.assumes})")
        elif 1 - 1 / answer.speedup >= limits.listed:
            found.append(
                f"{answer.what} a step would take about {answer.step_ms:.1f} ms, {answer.speedup:.2f} times as fast ({answer.assumes})"
            )
    return found


def _machine(signals: Signals, limits: Thresholds) -> list[str]:
    memory, found = signals.summary.memory, []
    used = memory_used(signals)
    if used is not None and used >= limits.memory_full:
        found.append(f"memory is {shown(used)} full: more workers, larger batches or caches may not fit")
    if memory is not None and memory.limit_events:
        found.append(f"the control group hit its memory limit {memory.limit_events} times during the run")
    return found + _busy(signals, limits)


def _busy(signals: Signals, limits: Thresholds) -> list[str]:
    """That others took the program's cores, where they did: not that cores were busy that it had no use for."""
    waited, others = signals.threads.runqueue_share if signals.threads is not None else None, _others_busy(signals, limits)
    if others and waited is not None and waited >= limits.no_core:
        return [
            f"the training thread had no core for {shown(waited)} of the time: these figures are the machine's; run again on a quieter one"
        ]
    if others and (waited is None or waited >= limits.runqueue_wait):
        return ["others kept the machine busy: figures hold for a machine that is as busy"]
    return []


def _others_busy(signals: Signals, limits: Thresholds) -> bool:
    """Whether others kept cores busy; without telemetry, whether a program that waited for a core left a good part of its own unused."""
    telemetry, threads = signals.summary.telemetry, signals.threads
    host = telemetry.host if telemetry is not None else None
    if host is not None and host.load is not None and host.cpu_used is not None and host.cpus:
        return host.load - host.cpu_used >= limits.others_busy * host.cpus
    if threads is None or threads.runqueue_share is None or threads.cpu_seconds is None or not threads.wall_seconds or not threads.cpus:
        return False
    used = threads.cpu_seconds / threads.wall_seconds
    return threads.runqueue_share >= limits.no_core and used < limits.threads_used * threads.cpus


def _losses(signals: Signals) -> list[str]:
    summary, found = signals.summary, []
    if summary.dropped_events:
        found.append(f"{summary.dropped_events} events were lost")
    if summary.device_time is not None and summary.device_time.dropped:
        found.append(f"{summary.device_time.dropped} device times were lost: their steps are left out of the device's figures")
    if summary.swallowed:
        worst = max(summary.swallowed, key=lambda place: summary.swallowed[place])
        found.append(f"the probe kept {sum(summary.swallowed.values())} errors of its own away from the program, most of them in {worst}")
    return found
