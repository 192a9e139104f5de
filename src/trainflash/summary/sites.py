"""Samples and recorded calls → cost sites: the owner's lines with what lies below them.

A sample's time counts for the owner's deepest line on its stack. Backward runs in C: what no Python frame explains there is divided among
the lines of the forward as the recorded steps tell (the nearest one to the sample's step). A line under which whole steps run stands for a
loop inside a library; its time is that of the library's deepest lines, where no torch and no arithmetic library begins.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from trainflash.schema import CallTree, Location, Peaks, Site
from trainflash.stacks import Bare, Calls, Node, Stack, anchored, beside_modules, kind_of, module_calls, root
from trainflash.summary.backward import behind_engine, python_in_network
from trainflash.summary.site_operators import with_operators
from trainflash.summary.steady import NS_PER_MS, Steady, steady_part
from trainflash.summary.weighing import NETWORK, Weighed, standing_for_more, weighed
from trainflash.trace import RankTrace, Trace

MOST_SITES = 60
LEAST_SHARE = 0.002  # own: two thousandths of the time explain nothing
MOST_CALLERS = 3
RARE = 0.05  # own: what was seen in so few of the steps comes now and then
LONG_NS = 100_000_000  # own: five samples in one step are no chance
ENGINE = "engine"

Key = tuple[str, Location]  # phase and place of a site


@dataclass
class _Place:
    """What is known of one site while it is put together."""

    tree: Node
    forward_ns: int = 0
    backward_ns: int = 0
    steps: Counter = field(default_factory=Counter)  # ns by step
    called_back: Counter = field(default_factory=Counter)
    callers: Counter = field(default_factory=Counter)
    beside_ns: int = 0
    under: Location | None = None


@dataclass(frozen=True)
class CostSites:
    """The sites, costliest first, and the owner's lines that stand for a loop in a library."""

    sites: tuple[Site, ...]
    loops: frozenset[Location] = frozenset()
    python: float | None = None  # share of Python inside forward, backward and update, at most; None: no recorded calls


def cost_sites(trace: Trace, rank: RankTrace, part: Steady, peaks: Peaks | None = None) -> CostSites:
    """The sites of the training thread and of its workers; none where stacks were not recorded.

    With `peaks` of the machine their operators have floors.
    """
    samples = rank.samples
    if samples.stack is None or not samples.stacks:
        return CostSites(())
    known = samples.stack >= 0
    kept = part.keeps(samples.step) & known
    stacks = list(weighed(samples, kept, rank))
    whole = int(samples.weight_ns[part.keeps(samples.step)].sum())
    if not whole:
        return CostSites(())
    loops, divided = standing_for_more(stacks)
    network = [each for each in stacks if each.phase == NETWORK]
    built = [each.stack for each in network if each.backward]  # calls that built a part of the graph: padding of inputs builds none
    bare = rank.bare_modules
    calls = module_calls(built, bare) or module_calls((each.stack for each in network), bare)
    places, in_run = _placed(stacks, divided, calls, bare), _placed(weighed(samples, known, rank), divided, calls, bare)
    wall_ns = max(1, rank.end_ns - rank.process_start_ns)
    run = {key: place.tree.ns / wall_ns for key, place in in_run.items()}
    seen = len(np.unique(samples.step[kept]))
    thirds = np.array_split(part.kept, 3)
    sites = [_site(key, place, whole, "main", run, seen, thirds) for key, place in places.items()]
    sites = _with_functions(with_operators(sites, rank.calls, divided, peaks))
    sites += _of_workers(trace, rank, part)
    sites.sort(key=lambda site: -site.share)
    chosen = tuple(site for site in sites if site.share >= LEAST_SHARE)[:MOST_SITES]
    return CostSites(chosen, loops, python_in_network(rank, part, samples, kept))


def call_tree(trace: Trace, *, run: str, warmup: int | None = None) -> CallTree:
    """The call tree of rank 0's training thread. `warmup` is the one that the summary was made with."""
    rank = trace.ranks[0]
    part = steady_part(rank, warmup)
    samples = part.counted(rank.samples)
    kept = part.keeps(samples.step)
    whole = int(samples.weight_ns[kept].sum())
    if samples.stack is None or not whole:
        return CallTree(run, ())
    trees: dict[str, Node] = {}
    for each in weighed(samples, kept & (samples.stack >= 0), rank):
        tree = trees.get(each.phase)
        if tree is None:
            tree = trees[each.phase] = root(each.phase)
        tree.add(each.stack, int(each.ns))
    return CallTree(run, tuple(sorted((tree.drawn(whole) for tree in trees.values()), key=lambda node: -node.share)))


def _placed(stacks: Iterable[Weighed], loops: frozenset[Location], calls: Calls, bare: Bare) -> dict[Key, _Place]:
    places: dict[Key, _Place] = {}
    for each in stacks:
        at, under = anchored(each.stack, loops)
        if at is None:
            continue
        frame = each.stack[at]
        key = each.phase, frame.location
        place = places.get(key)
        if place is None:
            place = places[key] = _Place(Node(frame), under=under)
        place.tree.add(each.stack[at + 1 :], int(each.ns))
        place.callers[_callers(each.stack, at)] += int(each.ns)
        place.steps[each.step] += int(each.ns)
        kind = ENGINE if each.beside else kind_of(each.stack, each.phase == NETWORK, each.backward)
        place.called_back[kind] += int(each.ns)
        if each.backward:
            place.backward_ns += int(each.ns)
            continue
        place.forward_ns += int(each.ns)
        if each.phase == NETWORK and behind_engine(each.stack) is None and beside_modules(each.stack, calls, bare) is not None:
            place.beside_ns += int(each.ns)
    return places


def _callers(stack: Stack, at: int) -> tuple[Location, ...]:
    """The owner's nearest lines above a frame, each of another function than the one below it; a comprehension is its function's."""
    found: list[Location] = []
    below = _named(stack[at].location)
    for frame in reversed(stack[:at]):
        if frame.kind == "own" and _named(frame.location) != below:
            found.append(frame.location)
            below = _named(frame.location)
    return tuple(found[:MOST_CALLERS])


def _named(place: Location) -> tuple[str, str]:
    return place.file, place.function.partition(".<locals>.<")[0]


def _site(
    key: tuple[str, Location], place: _Place, whole: int, role: str, run: dict[tuple[str, Location], float], seen: int, thirds: list
) -> Site:
    phase, location = key
    ns = place.tree.ns
    callers, led = place.callers.most_common(1)[0] if place.callers else ((), 0)
    kind, most = place.called_back.most_common(1)[0] if place.called_back else ("", 0)
    return Site(
        role=role,  # type: ignore[arg-type]
        phase=phase,
        location=location,
        share=ns / whole,
        run_share=run.get(key, 0.0),
        function_share=ns / whole,
        forward=place.forward_ns / whole,
        backward=place.backward_ns / whole,
        beside=place.beside_ns / whole,
        under=place.under,
        path=tuple(frame.location for frame in place.tree.way_down()),
        callers=callers if led >= 0.5 * ns else (),
        called_back=kind if most >= 0.5 * ns else "",
        often=_often(phase, place.steps, seen),
        early_ms=_in_step(place.steps, thirds[0]) if thirds else None,
        late_ms=_in_step(place.steps, thirds[-1]) if thirds else None,
    )


def _in_step(steps: Counter, chosen: np.ndarray) -> float | None:
    """Milliseconds a step in the chosen ones."""
    return sum(steps[int(step)] for step in chosen) / len(chosen) / NS_PER_MS if len(chosen) else None


def _often(phase: str, steps: Counter, seen: int) -> str:
    """Whether a site's time lies in few of the `seen` steps that have samples: a part of a step each time, not a sample by chance."""
    if phase in ("Eval", "Ckpt"):
        return "now and then"
    long = bool(steps) and sum(steps.values()) / len(steps) >= LONG_NS
    return "now and then" if long and len(steps) <= RARE * seen else "step"


def _with_functions(sites: list[Site]) -> list[Site]:
    whole: dict[tuple[str, str, str], float] = defaultdict(float)
    for site in sites:
        whole[(site.phase, site.location.file, site.location.function)] += site.share
    return [replace(site, function_share=whole[(site.phase, site.location.file, site.location.function)]) for site in sites]


def _of_workers(trace: Trace, rank: RankTrace, part: Steady) -> list[Site]:
    """Lines of all worker processes together, as shares of the time sampled in them."""
    places: dict[Key, _Place] = {}
    whole = 0
    for worker in trace.workers:
        samples = worker.samples
        if worker.parent != rank.pid or samples.stack is None:
            continue
        kept = part.holds(samples.t_ns)
        whole += int(samples.weight_ns[kept].sum())
        for index in np.flatnonzero(kept & (samples.stack >= 0)):
            stack = samples.stacks[samples.stack[index]]
            at, under = anchored(stack, frozenset())
            if at is None:
                at = _deepest_library(stack)
            if at is None:
                continue
            key = "Data", stack[at].location
            place = places.setdefault(key, _Place(Node(stack[at]), under=under))
            place.tree.add(stack[at + 1 :], int(samples.weight_ns[index]))
            place.callers[_callers(stack, at)] += int(samples.weight_ns[index])
    return [_site(key, place, whole, "worker", {}, 0, []) for key, place in places.items()] if whole else []


def _deepest_library(stack: Stack) -> int | None:
    return next((place for place in reversed(range(len(stack))) if stack[place].kind == "library"), None)
