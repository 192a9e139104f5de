"""Rules that read cost sites: slow_operator, callback, growth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainflash.diagnosis.claims import Claim, at, claim, count, milliseconds, percent, shown
from trainflash.diagnosis.lines import enclosing, metrics_between
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.slow_forms import CHAIN, CHAIN_INSTEAD, PAIRS, Form, all_pairs, chain_saves, known_form
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, Location, Site, SiteOperator, Trend

BOTH = ("Fwd", "Bwd")
WITHOUT_DERIVATIVE = ("torch/distributed/", "torch/_ops.py", "torch/library.py")  # what calls operators that may have none
CALLED_BACK = {
    "hook": "hooks",
    "metric": "metrics",
    "tracker": "trackers and profilers",
    "engine": "what autograd calls beside the nodes of the graph, such as hooks,",
}


def slow_operator(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """A call of torch that takes far longer than its bytes and FLOPs need on this machine, or that has a form known to be faster.

    Abstains without recorded calls. Calls of a device are not seen: the host only launches them.
    """
    if signals.on_gpu:
        return ()
    groups: dict[object, list[_Slow]] = {}
    for site in signals.summary.sites:
        for operator in site.operators if not site.called_back else ():
            slow = _slow(site, operator, limits)
            if slow is not None:
                groups.setdefault(slow.form.name if slow.form is not None else (site.location, operator.name), []).append(slow)
    for chain in _chains(signals.summary.sites, limits):
        lines = {each.site.location for each in chain}
        rivals = [found for found in groups.values() if any(each.site.location in lines for each in found)]
        if _saved(chain) > max(map(_saved, rivals), default=0.0):
            groups = {key: found for key, found in groups.items() if found not in rivals} | {(chain[0].site.location, CHAIN): chain}
    return tuple(_claimed(found, limits) for found in groups.values() if _saved(found) >= limits.dominant)


@dataclass(frozen=True)
class _Slow:
    """A call that takes longer than it has to; `saved`: the part of its time that a better form saves."""

    site: Site
    operator: SiteOperator
    form: Form | None
    saved: float
    times: float | None  # of its floor, where that is far below

    @property
    def share(self) -> float:
        return self.operator.share


def _slow(site: Site, operator: SiteOperator, limits: Thresholds) -> _Slow | None:
    took_ms, floor, form = operator.ms + operator.backward_ms, operator.floor_ms, known_form(operator)
    if form is None and operator.channels_last_saves is not None:
        return None  # a kernel of the library in whichever layout: see `memory_format`
    if form is None and operator.alone_ms is not None:
        took_ms = min(took_ms, operator.alone_ms)  # what it takes beyond that is no fault of the call
    far = bool(floor) and took_ms >= limits.far_above_floor * floor and took_ms >= limits.operator_ms * operator.calls
    saved = max(form.saves if form is not None else 0.0, 1 - floor / took_ms if far and floor else 0.0)
    return _Slow(site, operator, form, saved, took_ms / floor if far and floor else None) if saved > 0 else None


def _saved(found: list[_Slow]) -> float:
    return sum(each.operator.share * each.saved for each in found)


def _chains(sites: Sequence[Site], limits: Thresholds) -> Iterator[list[_Slow]]:
    """Calls of each function's lines that one call could do: a chain of elementwise ones, all pairs that are summed up."""
    functions: dict[tuple[str, str], list[Site]] = {}
    for site in sites:
        by_itself = all(place.file.startswith("torch/") for place in site.path)  # else the calls are a library's, of any functions
        if site.phase == "Fwd" and site.role == "main" and not site.called_back and by_itself:
            functions.setdefault((site.location.file, site.location.function), []).append(site)
    form = Form(CHAIN, lambda operator: True, CHAIN_INSTEAD, 0.0)
    for found in functions.values():
        operators = [each for site in found for each in site.operators]
        saved, calls = chain_saves(operators, limits.chained_ms)
        chains = [(form, saved, calls)] if saved >= limits.chain_saved else []
        chains += [(PAIRS, PAIRS.saves, pairs)] if (pairs := all_pairs(operators)) else []
        for each_form, each_saved, of_it in chains:
            chosen = set(map(id, of_it))
            yield [_Slow(site, each, each_form, each_saved, None) for site in found for each in site.operators if id(each) in chosen]


def _claimed(found: list[_Slow], limits: Thresholds) -> Claim:
    """One form in several places is one cause, told at the costliest of them."""
    first = max(found, key=lambda each: each.share)
    share, operator, form, phase = sum(each.share for each in found), first.operator, first.form, first.site.phase
    rows = [
        percent("share of wall time, with its backward", share),
        count("calls per step", operator.calls),
        milliseconds("per step", operator.ms + operator.backward_ms),
        *(Evidence("given", _operand(each)) for each in operator.given[:2]),
    ]
    if operator.floor_ms is not None:
        rows.append(milliseconds("what its bytes and FLOPs need on this machine at least", operator.floor_ms))
    if form is not None:
        rows += [Evidence("form", form.name), Evidence("faster", form.instead)]
    others: dict[Location, float] = {}
    for each in found:
        if each.site.location != first.site.location:
            others[each.site.location] = others.get(each.site.location, 0.0) + each.share
    if others:
        rows.append(Evidence("in other places too", ", ".join(f"{place} ({shown(part)})" for place, part in others.items())))
    times = f", {first.times:.0f} times what its bytes and FLOPs need" if first.times is not None else ""
    names = " and ".join(dict.fromkeys(each.operator.name for each in sorted(found, key=lambda each: -each.share)[:2]))
    return claim(
        "slow_operator",
        phase,
        "host",
        share,
        limits,
        weight=sum(each.share * each.saved for each in found),
        phases=BOTH if phase == "Fwd" else (phase,),
        summary=f"{names} {'take' if ' and ' in names else 'takes'} {shown(share)} of the time{at(first.site.location)}{times}"
        + (f": {form.name}" if form is not None else ""),
        evidence=rows,
        location=first.site.location,
    )


def _operand(operand) -> str:
    layout = "" if operand.layout == "contiguous" else f", {operand.layout}"
    return f"{' × '.join(map(str, operand.shape)) or 'a number'}, {operand.dtype}{layout}"


def callback(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Hooks, metrics, trackers that run inside forward, backward or step, and metrics between those. Abstains without stacks."""
    claims = []
    for kind, name in CALLED_BACK.items():
        found = [
            site for site in signals.summary.sites if site.called_back == kind and site.role == "main" and site.phase in ("Fwd", "Opt")
        ]
        between = metrics_between(signals.summary) if kind == "metric" else []
        found = sorted([*found, *between], key=lambda site: -site.share)
        share = sum(site.share for site in found)
        if not found or share < limits.dominant:
            continue
        first = found[0]
        rows = [
            percent("share of wall time", share),
            Evidence("hottest line", str(first.location)),
            *(Evidence("calls", f"{place.function} ({place})") for place in first.path[-1:]),
        ]
        inside = sum(site.backward for site in found)
        backward = inside > 0.5 * share
        phases = ("Bwd",) if inside >= (1 - limits.graph_built) * share else ("Fwd", "Bwd", "Opt", *(("Other",) if between else ()))
        claims.append(
            claim(
                "callback",
                "Bwd" if backward else first.phase,
                "host",
                share,
                limits,
                weight=signals.exposed(share),
                phases=phases,
                summary=f"{name} inside {'the training loop' if between else 'forward, backward or step'} take {shown(share)} of the time"
                + at(first.location),
                evidence=rows,
                location=first.location,
            )
        )
    return tuple(claims)


def beside_network(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """host_code in forward, through which no gradient flows: outside of modules, as a miner of pairs, or a module's own Python.

    Abstains without stacks.
    """
    if signals.on_gpu and signals.host_bound is not True:
        return ()
    forward = [site for site in signals.summary.sites if site.phase == "Fwd" and site.role == "main" and not site.called_back]
    python = _python_inside(forward, limits)
    parts = [
        (site.beside if site.backward < limits.graph_built * site.share and site.beside > 0 else python.get(site.location, 0.0), site)
        for site in forward
    ]
    found = sorted(((part, site) for part, site in parts if part > 0), key=lambda each: -each[0])
    share = sum(part for part, _ in found)
    inside = sum(part for part, site in found if site.location in python)
    if share < (limits.listed if 2 * inside >= share else limits.dominant):  # a loss does some work beside the network in any program
        return ()
    first = found[0][1]
    rows = [percent("share of wall time", share), Evidence("hottest line", str(first.location))]
    rows += [Evidence("calls", f"{place.function} ({place})") for place in first.path[-1:]]
    return (
        claim(
            "host_code",
            "Fwd",
            "host",
            share,
            limits,
            weight=signals.exposed(share),
            phases=("Fwd",),
            summary="work beside the network in its forward, through which no gradient flows, takes "
            f"{shown(share)} of the time, most of it{at(first.location)}",
            evidence=rows,
            location=first.location,
        ),
    )


def _python_inside(forward: list[Site], limits: Thresholds) -> dict[Location, float]:
    """What lines of forward take that is neither operators nor torch's own Python, in functions that are mostly that.

    Where a function builds a part of the graph, its Python is the cost of calling operators: see `launch_overhead`.
    """
    if not any(site.backward for site in forward):
        return {}  # no graph was recorded
    functions: dict[tuple[str, str], list[Site]] = {}
    for site in forward:
        functions.setdefault((site.location.file, enclosing(site.location.function)), []).append(site)
    found = {}
    for sites in functions.values():
        whole = sum(site.share for site in sites)
        parts = {
            site.location: max(0.0, site.share - sum(each.share for each in site.operators))
            for site in sites
            if not any(place.file.startswith("torch/") for place in site.path)
        }
        if sum(site.backward for site in sites) < limits.graph_built * whole and sum(parts.values()) >= limits.python_of_function * whole:
            found.update(parts)
    return found


def growth(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Steps take longer and longer, and one place is where. Abstains without enough steps, and where all places slow down alike.

    A machine that slows down, or other programs, slow all places and the wall clock; a program's own growth is one place's, and is there
    in CPU time too, where that was read.
    """
    trend = signals.summary.trend
    if trend is None or trend.location is None or not grows(trend, limits):
        return ()
    site = next((each for each in signals.summary.sites if each.location == trend.location), None)
    if site is None or not _of_one_place(trend, limits):
        return ()
    share = max(site.share, 1 - trend.early_ms / trend.late_ms)
    where = _registers(signals, site) or site
    rows = [
        milliseconds("a step in the first third of the steady steps", trend.early_ms),
        milliseconds("in the last third", trend.late_ms),
        milliseconds("of it this place, first third", trend.site_early_ms or 0.0),
        milliseconds("last third", trend.site_late_ms or 0.0),
    ]
    if trend.cpu_early_ms is not None and trend.cpu_late_ms is not None:
        rows += [
            milliseconds("CPU time a step, first third", trend.cpu_early_ms),
            milliseconds("last third", trend.cpu_late_ms),
        ]
    return (
        claim(
            "growth",
            site.phase if site.phase != "Fwd" or site.forward >= site.backward else "Bwd",
            "host",
            site.share,
            limits,
            at_most=share,
            phases=BOTH if site.phase == "Fwd" else (site.phase,),
            summary=f"steps take longer and longer: {trend.early_ms:.1f} ms in the first third, {trend.late_ms:.1f} ms in the last; what "
            f"grows is at {where.location}" + (f", in what backward calls for it at {site.location}" if where is not site else ""),
            evidence=rows,
            location=where.location,
        ),
    )


def grows(trend: Trend, limits: Thresholds) -> bool:
    """Whether steps grow all along, by more than a busy machine's ups and downs: in wall time, and in CPU time.

    Where that was not read, wall time has to grow in nearly every part.
    """
    parts = trend.parts_ms
    pairs = [(first, second) for place, first in enumerate(parts) for second in parts[place + 1 :]]
    rising = sum(second > first for first, second in pairs) / max(1, len(pairs))
    stays = parts[-1] >= limits.grown_stays * max(parts)
    by_cpu = trend.cpu_early_ms is not None and trend.cpu_late_ms is not None
    if by_cpu and trend.cpu_late_ms < limits.grown_cpu * trend.cpu_early_ms:
        return False
    return stays and trend.late_ms >= limits.grown * trend.early_ms and rising >= (limits.rising if by_cpu else limits.rising_alone)


def _of_one_place(trend: Trend, limits: Thresholds) -> bool:
    early, late = trend.site_early_ms or 0.0, trend.site_late_ms or 0.0
    rest_early, rest_late = trend.early_ms - early, trend.late_ms - late
    alone = late - early >= limits.grown_place * (trend.late_ms - trend.early_ms)
    faster = late * max(rest_early, 1e-9) >= limits.grown * early * max(rest_late, 1e-9)
    return alone and faster


def _registers(signals: Signals, site: Site) -> Site | None:
    """Of what the engine calls beside nodes the line that most likely left it there: it calls an operator that has no derivative."""
    if site.called_back != "engine":
        return None
    found = [
        each for each in signals.summary.sites if each is not site and any(place.file.startswith(WITHOUT_DERIVATIVE) for place in each.path)
    ]
    return max(found, key=lambda each: each.share, default=None)
