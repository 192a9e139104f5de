"""One cost is claimed once: what a more specific cause explains is taken out of the general claim, or stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.claims import MOST_SHARE, Claim, bound, severity, shown
from trainflash.diagnosis.input_signals import made_among_threads
from trainflash.diagnosis.lines import enclosing
from trainflash.diagnosis.rank_rules import RARE, late_rank
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.system_rules import collections_phase
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Ceiling

INPUTS = frozenset({"input_cpu", "input_io", "input_tail", "collate"})
INFLATED_BY_DEBUGGING = frozenset({"launch_overhead", "precision", "attention_kernel", "memory_format", "small_microbatch"})
SLOWS_OPERATORS = (
    "debug_api",
    "thread_oversubscription",
    "recompilation",
    "small_microbatch",
    "optimizer",
    "attention_kernel",
    "recompute",
    "host_code",
    "slow_operator",
    "callback",
    "growth",
)


def settle(signals: Signals, claims: Iterable[Claim], limits: Thresholds) -> list[Claim]:
    """The claims without what is counted twice. Claims that fall below `limits.listed` are dropped."""
    settled = list(claims)
    for step in (_crowded, _constant, _beginning, _straggling, _waiting, _exchanging, _collecting, _debugged, _placed, _launching, _capped):
        settled = step(signals, settled, limits)
    return settled


def rivals(claims: list[Claim]) -> list[Claim]:
    """Claims that are no part of another claim that was made."""
    made = {claim.finding.kind for claim in claims}
    return [claim for claim in claims if claim.inside is None or claim.inside not in made]


def together(signals: Signals, claims: list[Claim]) -> Ceiling | None:
    """The speed-up if all costs were gone: costs of different phases add up, those of one phase take parts of what the others left."""
    left = {name: max(0.0, stat.share) for name, stat in signals.summary.phases.items()}
    counted = [claim for claim in rivals(claims) if claim.finding.kind != "startup"]
    if not counted or not left:
        return None
    whole = dict(left)
    for claim in counted:
        touched = [name for name in (claim.phases or whole) if name in whole]
        size = sum(whole[name] for name in touched)
        part = min(1.0, claim.finding.share / size) if size > 0 else 0.0
        for name in touched:
            left[name] *= 1 - part
    gone = 1 - sum(left.values()) / max(sum(whole.values()), 1e-9)
    return bound(min(gone, MOST_SHARE))


def weighed(claim: Claim, taken: float, limits: Thresholds) -> Claim:
    """The claim less `taken` of the wall time, with everything that follows from its share."""
    share = max(0.0, claim.finding.share - taken)
    said = claim.finding.summary.replace(shown(claim.finding.share), shown(share), 1)
    finding = replace(claim.finding, share=share, severity=severity(share, limits), ceiling=bound(share), summary=said)
    return replace(claim, finding=finding, weight=max(0.0, claim.weight - taken))


def _less(claims: list[Claim], taken: float, matches: Callable[[Claim], bool], limits: Thresholds) -> list[Claim]:
    changed = [weighed(claim, taken, limits) if matches(claim) else claim for claim in claims]
    return [claim for claim in changed if not (matches(claim) and claim.weight < limits.listed)]


def _constant(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """Input that is nearly all one result, made again each time, is repeated work first: nothing has to be made faster, it is kept."""
    same = {work.location for work in signals.repeated if work.distinct == 1 and work.repeats == work.calls - 1}
    for kept in [claim for claim in claims if claim.finding.kind == "repeated_work" and claim.finding.location in same]:
        whole = next((claim for claim in claims if claim.finding.kind == kept.inside and claim.finding.phase == "Data"), None)
        if whole is not None and kept.finding.share >= limits.constant * whole.finding.share:
            first, inside = replace(kept, inside=None), replace(whole, inside="repeated_work")
            return [first if claim is kept else inside if claim is whole else claim for claim in claims]
    return claims


def _crowded(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """Batches that threads without cores make: the input costs what would be left with cores for all of them."""
    threads = next((claim for claim in claims if claim.finding.kind == "thread_oversubscription" and "Data" in claim.phases), None)
    if threads is None:
        return claims
    making = made_among_threads(signals.summary, limits)
    taken = making * threads.finding.share / ((signals.compute or 0.0) + making)
    return _less(claims, taken, lambda claim: claim.finding.kind in INPUTS, limits)


def _beginning(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """What is waited for where processes are started again and again: they begin cold, and how much of the wait that is cannot be told."""
    starting = [claim for claim in claims if claim.finding.kind == "worker_startup" and claim.weight >= limits.dominant]
    for each in signals.summary.started:
        begun = next((claim for claim in starting if claim.finding.location == each.location), None)
        if begun is None or each.what != "process":
            continue
        functions = {(place.file, enclosing(place.function)) for place, _ in each.lines}
        most = begun.weight / limits.started_of_wait
        claims = [
            replace(claim, inside="worker_startup") if _waits_in(claim, functions) and claim.weight <= most else claim for claim in claims
        ]
    return claims


def _waits_in(claim: Claim, functions: set[tuple[str, str]]) -> bool:
    found, where = claim.finding, claim.finding.location
    general = found.kind in INPUTS or (found.kind == "host_code" and found.phase == "Other")
    return general and claim.inside is None and where is not None and (where.file, enclosing(where.function)) in functions


def _straggling(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """Phases are rank 0's: where it is the late rank, what it takes longer than the others is the straggler's cost and not its phase's."""
    late = late_rank(signals, limits)
    if late is None or late.stat.rank != 0 or late.phase in RARE:
        return claims
    general = INPUTS if late.phase == "Data" else {"Other": frozenset({"host_code"})}.get(late.phase, frozenset())
    return _less(claims, late.phase_ms / max(late.stat.step_ms, 1e-9), lambda claim: claim.finding.kind in general, limits)


def _waiting(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """Ranks wait for the late one inside their exchange: where the two cannot be told apart, the late rank is the cause."""
    waits = max((claim.weight for claim in claims if claim.finding.kind == "rank_straggler"), default=None)
    if waits is None:
        return claims
    return [
        replace(claim, inside="rank_straggler")
        if claim.finding.kind == "communication" and abs(claim.weight - waits) <= limits.tie
        else claim
        for claim in claims
    ]


def _exchanging(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """A line of the owner's between the phases that calls a collective waits for other ranks; it computes only for the rest of its time."""
    found = signals.summary.communication
    places = {claim.finding.location for claim in claims if claim.finding.kind == "communication" and not claim.phases} - {None}
    if found is None or not places:
        return claims
    return _less(
        claims,
        found.share,
        lambda claim: claim.finding.kind == "host_code" and claim.finding.phase == "Other" and claim.finding.location in places,
        limits,
    )


def _collecting(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """The program's own garbage collections inside another phase are no cost of that; in Other its lines leave them out already."""
    made = [claim for claim in claims if claim.finding.kind == "garbage_collection"]
    phase = collections_phase(signals)
    if not made or phase is None or phase == "Other":
        return claims
    return _less(
        claims,
        made[0].finding.share,
        lambda claim: (
            claim.inside is None and claim.phases == (phase,) and claim.finding.kind not in ("garbage_collection", "rank_straggler")
        ),
        limits,
    )


def _debugged(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """A debugging aid inflates forward and backward: what was estimated from them stands beside it."""
    if not any(claim.finding.kind == "debug_api" for claim in claims):
        return claims
    return [replace(claim, inside="debug_api") if _inflated(claim) else claim for claim in claims]


def _inflated(claim: Claim) -> bool:
    in_network = claim.finding.kind == "host_code" and claim.finding.phase in COMPUTE
    return claim.inside is None and (in_network or claim.finding.kind in INFLATED_BY_DEBUGGING)


def _placed(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """One place is claimed once: what grows there, what calls it back, the operator, and then Python that nothing else explains."""
    grown = signals.summary.trend.location if signals.summary.trend is not None else None
    for leader in ("growth", "callback", "slow_operator"):
        places = [claim.finding.location for claim in claims if claim.finding.kind == leader]
        lines = {(place.file, place.line) for place in places + ([grown] if leader == "growth" and places else []) if place is not None}
        weight = max((claim.weight for claim in claims if claim.finding.kind == leader), default=0.0)
        if lines:
            claims = [replace(claim, inside=leader) if _general(claim, leader, lines, weight) else claim for claim in claims]
    return claims


def _general(claim: Claim, leader: str, lines: set[tuple[str, int]], weight: float) -> bool:
    """Whether a claim of less to say stands at a leader's line, or is what Python in the network cannot explain beside it.

    Code in forward alone that takes more than the leader is no part of it.
    """
    found = claim.finding
    if found.kind == leader or claim.inside is not None or found.kind in ("growth", "memory_pressure"):
        return False
    here = found.location is not None and (found.location.file, found.location.line) in lines
    inside_network = found.phase in COMPUTE and found.kind in ("host_code", "callback", "slow_operator", "sync_point", "launch_overhead")
    between = (found.phase == "Other" and found.kind in ("host_code", "callback")) or (found.phase == "Data" and found.kind in INPUTS)
    more = claim.phases == ("Fwd",) and claim.weight > weight
    return (inside_network and (here or (found.kind == "host_code" and not more))) or (between and here)


def _launching(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """Tiny operators are the last explanation: beside whatever else makes operators slow or many."""
    causes = {
        claim.finding.kind: claim.weight
        for claim in claims
        if claim.finding.kind in SLOWS_OPERATORS and not (claim.finding.kind == "host_code" and claim.finding.phase == "Other")
    }
    leader = max(causes, key=lambda kind: causes[kind], default=None)
    if leader is None or causes[leader] < limits.dominant:
        return claims
    return [replace(claim, inside=leader) if claim.finding.kind == "launch_overhead" else claim for claim in claims]


def _capped(signals: Signals, claims: list[Claim], limits: Thresholds) -> list[Claim]:
    """Nothing takes more than the phases that it lies in, and a part weighs no more than the whole that it stands beside."""
    phases = signals.summary.phases
    fitting = []
    for claim in claims:
        most = sum(max(0.0, phases[name].share) for name in claim.phases if name in phases) if claim.phases else 1.0
        if claim.phases and claim.finding.share > most + 1e-9 and claim.finding.kind != "startup":
            claim = weighed(claim, claim.finding.share - most, limits)
            if claim.weight < limits.listed:
                continue
        fitting.append(claim)
    weights: dict[str, float] = {}
    for claim in fitting:
        weights[claim.finding.kind] = max(weights.get(claim.finding.kind, 0.0), claim.weight)
    whole = [weights.get(claim.inside, 1.0) if claim.inside is not None else 1.0 for claim in fitting]
    return [replace(claim, weight=min(claim.weight, most)) for claim, most in zip(fitting, whole, strict=True)]
