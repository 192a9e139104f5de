"""Phases that only call stacks tell, as recorded steps have shown.

Batches that a training step makes by itself: what runs in front of the step's first module, and no gradient flows through, is Data. So is
what a library's iterator does with the batches that it takes from a loader, and what a function of the owner's does between the call of its
data function and that of the network. A loss that a library computes outside of modules: where it
calls backward, the statements before it that build the graph are forward.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from trainflash.schema import PHASES, Location
from trainflash.stacks import Stack, StackFrame, anchor, beside_modules, kind_of, module_calls
from trainflash.summary.backward import behind_engine
from trainflash.summary.steady import Steady
from trainflash.summary.weighing import NETWORK, standing_for_more, weighed
from trainflash.trace import PARTS, RankTrace

ITERATES = re.compile(r"\.__(iter|next)__$")
GRAPH_BUILT = 0.1  # own: of a place's time in backward, from which on it builds a part of the graph


def with_phases_by_stack(rank: RankTrace, part: Steady) -> RankTrace:
    """The rank with such samples where they belong, and the same part of each step's phase. Unchanged without stacks."""
    built = [row.stack for call in rank.calls for row in call.rows if row.backward_ns]
    if rank.samples.stack is None:
        return rank
    rank = _moved(rank, part, "Other", "Data", [*_iterating(rank), *_made_ready(rank)])
    if not built:
        return rank
    rank = _moved(rank, part, "Other", "Fwd", _of_librarys_forward(rank, built))
    return _moved(rank, part, "Fwd", "Data", _ahead_of_network(rank, part))


def _moved(rank: RankTrace, part: Steady, source: str, target: str, stacks: list[int]) -> RankTrace:
    samples = rank.samples
    inside = samples.phase == PHASES.index(source)
    moved = inside & np.isin(samples.stack, stacks)
    counted = part.keeps(samples.step)
    whole = int(samples.weight_ns[counted & inside].sum())
    portion = int(samples.weight_ns[counted & moved].sum()) / whole if whole else 0.0
    if not portion:
        return rank
    spent_ns = (portion * rank.phase_ns[source]).astype(np.int64)
    in_step = samples.part is not None and target == "Data"
    return replace(
        rank,
        samples=replace(
            samples,
            phase=np.where(moved, PHASES.index(target), samples.phase),
            part=np.where(moved, PARTS.index("in_step"), samples.part) if in_step else samples.part,
        ),
        phase_ns={**rank.phase_ns, source: rank.phase_ns[source] - spent_ns, target: rank.phase_ns.get(target, 0) + spent_ns},
    )


def _stacks_in(rank: RankTrace, phase: str) -> list[int]:
    samples = rank.samples
    return np.unique(samples.stack[(samples.phase == PHASES.index(phase)) & (samples.stack >= 0)]).tolist()


def _iterating(rank: RankTrace) -> list[int]:
    """Stacks of no phase inside iterators of libraries that batches are fetched in, too."""
    stacks = rank.samples.stacks
    fetching = {each for number in _stacks_in(rank, "Data") for each in _iterators(stacks[number])}
    return [number for number in _stacks_in(rank, "Other") if not fetching.isdisjoint(_iterators(stacks[number]))]


def _iterators(stack: Stack) -> set[tuple[str, str]]:
    frames = (frame.location for frame in stack if frame.kind == "library")
    return {(place.file, place.function) for place in frames if ITERATES.search(place.function)}


def _made_ready(rank: RankTrace) -> list[int]:
    """Stacks of no phase behind a call of a data function and in front of the network's, in the function that calls both."""
    stacks = rank.samples.stacks
    made = {(each.location.file, each.location.function) for each in rank.data_functions}
    given: dict[tuple[str, str], int] = {}
    for number in _stacks_in(rank, "Data") if made else ():
        for frame, called in pairwise(stacks[number]):
            if (called.location.file, called.location.function) in made:
                place = frame.location
                given[place.file, place.function] = min(place.line, given.get((place.file, place.function), place.line))
    calls = module_calls((stacks[number] for number in _stacks_in(rank, "Fwd")), rank.bare_modules) if given else {}
    between = {key: (line, calls[key]) for key, line in given.items() if line < calls.get(key, line)}

    def ready(frame: StackFrame) -> bool:
        first, last = between.get((frame.location.file, frame.location.function), (0, 0))
        return first < frame.location.line < last

    return [number for number in _stacks_in(rank, "Other") if any(map(ready, stacks[number]))] if between else []


def _ahead_of_network(rank: RankTrace, part: Steady) -> list[int]:
    samples = rank.samples
    stacks = list(weighed(samples, part.keeps(samples.step) & (samples.stack >= 0), rank))
    _, lines = standing_for_more(stacks)
    network = [each for each in stacks if each.phase == NETWORK]
    calls = module_calls((each.stack for each in network if each.backward), rank.bare_modules)
    spent: Counter[Location | None] = Counter()
    back: Counter[Location | None] = Counter()
    for each in network:
        at = anchor(each.stack, lines)
        spent[at] += int(each.ns)
        back[at] += int(each.ns) if each.backward else 0
    ahead = []
    for number in _stacks_in(rank, "Fwd"):
        stack = samples.stacks[number]
        at = anchor(stack, lines)
        called = behind_engine(stack) is not None or kind_of(stack, True, False)  # a derivative that is a part of the graph, a metric
        if not called and beside_modules(stack, calls, rank.bare_modules) == "ahead" and back[at] < GRAPH_BUILT * spent[at]:
            ahead.append(number)
    return ahead


def _of_librarys_forward(rank: RankTrace, built: list[Stack]) -> list[int]:
    stacks = rank.samples.stacks
    callers = {}
    for number in _stacks_in(rank, "Bwd"):
        engine = behind_engine(stacks[number])
        if engine is not None:
            caller = stacks[number][: len(stacks[number]) - len(engine)]
            callers[caller] = None
    forward = _statements(built, callers)
    return [number for number in _stacks_in(rank, "Other") if _statements([stacks[number]], callers) & forward]


def _statements(stacks: Iterable[Stack], callers: Iterable[Stack]) -> set[tuple[Location, ...]]:
    """Where stacks leave the way to a call of backward: the statements of a library's function that calls it, by all lines above."""
    found = set()
    for stack in stacks:
        for caller in callers:
            at = next((place for place, (one, other) in enumerate(zip(stack, caller, strict=False)) if one != other), None)
            if at is not None and stack[at].kind == "library" and _same_function(stack[at].location, caller[at].location):
                found.add(tuple(frame.location for frame in stack[: at + 1]))
    return found


def _same_function(one: Location, other: Location) -> bool:
    return one.file == other.file and one.function == other.function
