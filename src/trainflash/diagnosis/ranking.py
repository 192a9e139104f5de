"""Claims of the rules → one ordered answer, or none with the reason."""

from __future__ import annotations

from dataclasses import replace

from trainflash.diagnosis.claims import Claim, bound, percent, shown
from trainflash.diagnosis.rules import RULES
from trainflash.diagnosis.signals import COMPUTE, Signals, read
from trainflash.diagnosis.thresholds import DEFAULT, Thresholds
from trainflash.schema import Diagnosis, Finding, Summary

UNSTATISTICAL = frozenset({"startup"})  # findings that stand on one measurement, however few steps there are
MARGIN = 1e-9  # shares are sums of floats


def diagnose(summary: Summary, limits: Thresholds = DEFAULT) -> Diagnosis:
    """The findings of one run, costliest first; the first is the bottleneck.

    A run without a cost of at least `limits.dominant` (or small ones of `limits.dominant_together`) is healthy: its first finding is
    `compute`. `abstained` is set, and only findings that need no statistics are left, when there are too few steps, when time that
    nothing explains could change the order, or when an unsteady run has no clear leader. Raises nothing.
    """
    signals = read(summary, limits)
    claims = [claim for rule in RULES for claim in rule(signals, limits)]
    abstained = _abstention(signals, claims, limits)
    if abstained is not None:
        findings = tuple(claim.finding for claim in claims if claim.finding.kind in UNSTATISTICAL)
    else:
        findings = _ordered(signals, claims, limits)
    return Diagnosis(
        run=summary.run,
        steps=summary.steps,
        wall_s=summary.wall_s,
        timeline=summary.timeline,
        coverage=summary.coverage,
        phases=dict(summary.phases),
        findings=findings,
        abstained=abstained,
        notes=_notes(signals, claims if abstained is None else [], limits),
    )


def _abstention(signals: Signals, claims: list[Claim], limits: Thresholds) -> str | None:
    summary = signals.summary
    if summary.steps < limits.min_steps:
        why = "let it run longer" if summary.stopped else "the program ended by itself: give it more steps or epochs"
        return f"only {summary.steps} steps after warm-up, at least {limits.min_steps} are needed; {why}"
    leading = sorted((claim.weight for claim in _against_each_other(claims)), reverse=True)
    top = leading[0] if leading else 0.0
    unexplained = signals.other - (signals.other_in_lines or 0.0)
    if unexplained > max(limits.unexplained, top):
        means = "line samples were off: sample lines" if signals.other_in_lines is None else "mark it with `with phase(...)`"
        return f"{shown(unexplained)} of the time is in no phase and in no line of the project's code, more than any cost found; {means}"
    lead = top - (leading[1] if len(leading) > 1 else 0.0)
    if summary.steady is False and lead < limits.clear_lead:
        return (
            f"step times never settled in {summary.steps + summary.warmup_steps} steps and no cost leads clearly; "
            "run longer, or on a quieter machine"
        )
    return None


def _ordered(signals: Signals, claims: list[Claim], limits: Thresholds) -> tuple[Finding, ...]:
    rivals = sorted(_against_each_other(claims), key=lambda claim: -claim.weight)
    beside = [claim for claim in claims if claim not in rivals]
    rivals = _with_ties(rivals, limits)
    ordered: list[Finding] = []
    for rival in rivals:
        ordered.append(rival.finding)
        parts = sorted((claim for claim in beside if claim.inside == rival.finding.kind), key=lambda claim: -claim.weight)
        ordered += [claim.finding for claim in parts]
    if _healthy(rivals, limits):
        return (_compute(signals, rivals, limits), *ordered)
    return tuple(ordered)


def _against_each_other(claims: list[Claim]) -> list[Claim]:
    """Claims that are no part of another claim that was made."""
    made = {claim.finding.kind for claim in claims}
    return [claim for claim in claims if claim.inside is None or claim.inside not in made]


def _with_ties(rivals: list[Claim], limits: Thresholds) -> list[Claim]:
    """The leader and all within `limits.tie` of it name each other."""
    if not rivals or rivals[0].weight < limits.dominant:
        return rivals
    tied = [claim for claim in rivals if rivals[0].weight - claim.weight <= limits.tie + MARGIN and claim.finding.kind != "startup"]
    kinds = [claim.finding.kind for claim in tied]
    if len(tied) < 2:
        return rivals
    return [
        replace(claim, finding=replace(claim.finding, tied_with=tuple(kind for kind in kinds if kind != claim.finding.kind)))
        if claim in tied
        else claim
        for claim in rivals
    ]


def _healthy(rivals: list[Claim], limits: Thresholds) -> bool:
    top = rivals[0].weight if rivals else 0.0
    return top < limits.dominant - MARGIN and sum(claim.weight for claim in rivals) < limits.dominant_together


def _compute(signals: Signals, rivals: list[Claim], limits: Thresholds) -> Finding:
    share = signals.compute or 0.0
    costs = f"no other cost reaches {shown(limits.dominant if rivals else limits.listed)}"
    phases = signals.summary.phases
    on_device = signals.on_gpu and signals.summary.timeline == "device"
    return Finding(
        kind="compute",
        phase=max((name for name in COMPUTE if name in phases), key=lambda name: phases[name].share, default="Fwd"),
        bound_by="device" if on_device else "host",
        share=share,
        severity="none",
        summary=f"healthy: {shown(share)} of the time is the network's own computing, {costs}",
        evidence=tuple(percent(name, phases[name].share) for name in COMPUTE if name in phases),
        location=None,
        ceiling=None,
        knobs=(),
    )


def _notes(signals: Signals, claims: list[Claim], limits: Thresholds) -> tuple[str, ...]:
    summary = signals.summary
    notes = []
    costs = [claim for claim in _against_each_other(claims) if claim.finding.kind != "startup"]
    total = min(1.0, sum(claim.finding.share for claim in costs))
    if len(costs) > 1:
        notes.append(
            f"the {len(costs)} costs together are {shown(total)} of the time; without all of them "
            f"the program could be at most {bound(total).speedup:.1f} times as fast"
        )
    if signals.startup is not None and signals.startup >= limits.dominant:
        notes.append(f"start-up is {shown(signals.startup)} of this whole run; shares are of the steady part after it")
    notes += _outside_steady(signals, limits)
    if summary.steady is False:
        notes.append("step times never settled within the first half of the run; the second half was taken")
    if signals.on_gpu and summary.timeline == "host":
        notes.append("device times were not recorded: a phase's share is what the host spent or waited in it, not what the GPU did")
    if summary.ranks > 1:
        notes.append(f"phases are of rank 0 of {summary.ranks}")
    if summary.dropped_events:
        notes.append(f"{summary.dropped_events} events were lost")
    if summary.swallowed:
        notes.append(f"the probe kept {sum(summary.swallowed.values())} errors of its own away from the program")
    return tuple(notes)


def _outside_steady(signals: Signals, limits: Thresholds) -> list[str]:
    """Evaluations, checkpoints and logs that cost the run much and the steady part little: they fell on warm-up or after the last step."""
    summary, notes = signals.summary, []
    for activity in summary.activities:
        steady, seconds = signals.share(activity.phase) or 0.0, activity.count * activity.mean_ms / 1000
        if steady < limits.listed and summary.wall_s > 0 and seconds / summary.wall_s >= limits.dominant:
            notes.append(
                f"{activity.phase}: {activity.count} times, {seconds:.1f} s, mostly outside the steady part, so not among the shares"
            )
    return notes
