"""Claims of the rules → one ordered answer, or none with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from trainflash.diagnosis.abstention import abstention
from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.census import fixed_costs, mean_operator_us
from trainflash.diagnosis.claims import Claim, claim, percent, shown
from trainflash.diagnosis.lines import same_line
from trainflash.diagnosis.measured import apply_what_if, by_measurement
from trainflash.diagnosis.notes import notes
from trainflash.diagnosis.overlaps import rivals, settle, together
from trainflash.diagnosis.rules import RULES
from trainflash.diagnosis.signals import Signals, read
from trainflash.diagnosis.thresholds import DEFAULT, Thresholds
from trainflash.schema import Diagnosis, Finding, Summary

UNSTATISTICAL = frozenset({"startup"})  # findings that stand on one measurement, however few steps there are
MARGIN = 1e-9  # shares are sums of floats


def diagnose(summary: Summary, limits: Thresholds = DEFAULT) -> Diagnosis:
    """The findings of one run, costliest first; the first is the bottleneck.

    A run without a cost of at least `limits.dominant` (or small ones of `limits.dominant_together`) is healthy: its first finding is
    `compute`. `abstained` is set, and only findings that need no statistics are left, when there are too few steps, or when time that
    nothing explains could change the order; `advice` then says what would help. In an unsteady run near costs are tied. Ceilings
    that were measured in replays replace the bounds, and settle ties. Raises nothing.
    """
    signals = read(summary, limits)
    claims = settle(signals, [made for rule in RULES for made in rule(signals, limits)], limits)
    claims = apply_what_if(summary, claims)
    why = abstention(signals, rivals(claims), limits)
    if why is not None:
        findings = tuple(each.finding for each in claims if each.finding.kind in UNSTATISTICAL)
    else:
        findings = tuple(each.finding for each in ranked(signals, claims, limits))
    all_gone = together(signals, claims) if why is None else None
    return Diagnosis(
        run=summary.run,
        steps=summary.steps,
        wall_s=summary.wall_s,
        timeline=summary.timeline,
        coverage=summary.coverage,
        phases=dict(summary.phases),
        findings=findings,
        abstained=None if why is None or _stands_alone(claims, limits) else why.reason,
        sites=summary.sites[: limits.sites],
        notes=notes(signals, rivals(claims) if why is None else [], all_gone, limits),
        together=all_gone,
        advice=() if why is None else why.advice,
    )


def _stands_alone(claims: list[Claim], limits: Thresholds) -> bool:
    """Whether a finding that needs no statistics outweighs whatever the steady part could still show."""
    return any(each.finding.kind in UNSTATISTICAL and each.weight > limits.dominant for each in claims)


def ranked(signals: Signals, claims: list[Claim], limits: Thresholds) -> tuple[Claim, ...]:
    """The claims in order: heaviest first, the parts of each behind it; `compute` before all where the program is healthy."""
    leaders = _with_ties(sorted(rivals(claims), key=lambda each: -each.weight), _margins(signals, limits), limits)
    ordered: list[Claim] = []
    for leader in leaders:
        ordered.append(leader)
        ordered += _parts(leader.finding.kind, claims, {id(each) for each in ordered})
    if _healthy(signals, leaders, limits):
        return (_compute(signals, leaders, limits), *ordered)
    return tuple(ordered)


def _parts(kind: str, claims: list[Claim], placed: set[int]) -> list[Claim]:
    """Claims inside `kind`, heaviest first, each followed by its own parts; none that stands already."""
    found = []
    for part in sorted((each for each in claims if each.inside == kind and id(each) not in placed), key=lambda each: -each.weight):
        placed.add(id(part))
        found += [part, *_parts(part.finding.kind, claims, placed)]
    return found


def _margins(signals: Signals, limits: Thresholds) -> tuple[float, float]:
    """How far behind the leader another cost ties with it: any, and one that could be the bottleneck, which in an unsteady run may lead."""
    return limits.tie, limits.clear_lead if signals.summary.steady is False else limits.tie


def _with_ties(leaders: list[Claim], margins: tuple[float, float], limits: Thresholds) -> list[Claim]:
    """The leader and all within a margin of it name each other; measured ceilings order them where all were measured."""
    if not leaders or leaders[0].weight < limits.dominant:
        return leaders
    near = [each for each in leaders if leaders[0].weight - each.weight <= margins[each.weight >= limits.dominant] + MARGIN]
    tied = [each for each in near if each.finding.kind != "startup"]
    kinds = [each.finding.kind for each in tied]
    if len(tied) < 2:
        return leaders
    rest = [each for each in leaders if each not in tied]
    named = [
        replace(each, finding=replace(each.finding, tied_with=tuple(kind for n, kind in enumerate(kinds) if n != place)))
        for place, each in enumerate(tied)
    ]
    return [*by_measurement(named), *rest]


def _healthy(signals: Signals, leaders: list[Claim], limits: Thresholds) -> bool:
    counted = [each for each in leaders if not _scattered(signals, each.finding, limits)]
    largest = max((each.weight for each in counted if each.leads), default=0.0)
    several = sum(each.weight for each in counted) if len(counted) > 1 else 0.0
    return largest < limits.dominant - MARGIN and several < limits.dominant_together


def _scattered(signals: Signals, finding: Finding, limits: Thresholds) -> bool:
    """Whether the cost is that of many functions of a library, each too small to be listed by itself: there is no line to act on.

    Such are the steps of a reinforcement learner's rollouts, where the environment is cheap. A third of the time is a cost in any case.
    """
    places = [site for site in signals.summary.sites if site.role == "main" and site.phase == finding.phase]
    in_library = any(site.under is not None and same_line(site.location, finding.location) for site in places)
    functions = Counter[tuple[str, str]]()
    for site in places:
        functions[site.location.file, site.location.function] += site.share
    return in_library and max(functions.values()) < limits.listed and finding.share < limits.high


def _compute(signals: Signals, leaders: list[Claim], limits: Thresholds) -> Claim:
    share = signals.compute or 0.0
    large = [f"{each.finding.kind} ({shown(each.finding.share)})" for each in leaders if each.finding.share >= limits.dominant]
    other = f"no other cost but {' and '.join(large)}" if large else "no other cost"
    costs = f"{other} reaches {shown(limits.dominant if leaders else limits.listed)}"
    verdict = f"healthy: {shown(share)} of the time is the network's own computing, {costs}"
    phases = signals.summary.phases
    on_device = signals.on_gpu and signals.summary.timeline == "device"
    made = claim(
        "compute",
        max((name for name in COMPUTE if name in phases), key=lambda name: phases[name].share, default="Fwd"),
        "device" if on_device else "host",
        share,
        limits,
        summary=_idle_inside(signals, share, costs, limits) or verdict,
        evidence=(percent(name, phases[name].share) for name in COMPUTE if name in phases),
    )
    finding: Finding = replace(made.finding, severity="none", ceiling=None)
    return replace(made, finding=finding)


def _idle_inside(signals: Signals, share: float, costs: str, limits: Thresholds) -> str | None:
    """What to say of a network that is the only cost and itself mostly the cost of calling its operators; None where it is not known to be.

    There may be reasons for small batches, so that it is no finding; "healthy" would say that nothing is to be gained.
    """
    operators, numerics = signals.summary.operators, signals.summary.numerics
    mean_us, fixed = mean_operator_us(signals), fixed_costs(signals, limits)
    if signals.on_gpu or operators is None or mean_us is None or fixed is None or (numerics is not None and numerics.compiled):
        return None
    if fixed < limits.tiny_fixed or mean_us > limits.tiny_mean_us:
        return None
    return (
        f"no cost outside the network: {shown(share)} of the time is its own computing, {costs}; but that is {operators.per_step:.0f} "
        f"operators a step, {mean_us:.0f} µs each, mostly the cost of calling them: where the training allows a larger batch or fused "
        "layers, the machine does more in the same time"
    )
