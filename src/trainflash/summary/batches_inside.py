"""Batches that a training step makes by itself: what runs in front of the step's first module, and no gradient flows through, is Data."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from trainflash.schema import PHASES, Location
from trainflash.stacks import anchor, beside_modules, kind_of, module_calls
from trainflash.summary.steady import Steady
from trainflash.summary.weighing import NETWORK, standing_for_more, weighed
from trainflash.trace import PARTS, RankTrace

GRAPH_BUILT = 0.1  # own: of a place's time in backward, from which on it builds a part of the graph


def with_batches_inside(rank: RankTrace, part: Steady) -> RankTrace:
    """The rank with such samples in Data, and of each step the same part of forward. Unchanged without stacks or recorded calls."""
    samples = rank.samples
    if samples.stack is None or not rank.calls or not any(row.backward_ns for call in rank.calls for row in call.rows):
        return rank
    kept = part.keeps(samples.step) & (samples.stack >= 0)
    stacks = list(weighed(samples, kept, rank))
    _, lines = standing_for_more(stacks)
    network = [each for each in stacks if each.phase == NETWORK]
    calls = module_calls(each.stack for each in network if each.backward)
    spent: Counter[Location | None] = Counter()
    back: Counter[Location | None] = Counter()
    for each in network:
        at = anchor(each.stack, lines)
        spent[at] += int(each.ns)
        back[at] += int(each.ns) if each.backward else 0
    forward = (samples.phase == PHASES.index("Fwd")) & (samples.stack >= 0)
    ahead = []
    for number in np.unique(samples.stack[forward]):
        stack = samples.stacks[number]
        at = anchor(stack, lines)
        if beside_modules(stack, calls) == "ahead" and not kind_of(stack, True, False) and back[at] < GRAPH_BUILT * spent[at]:
            ahead.append(number)
    moved = forward & np.isin(samples.stack, ahead)
    whole = int(samples.weight_ns[kept & (samples.phase == PHASES.index("Fwd"))].sum())
    portion = int(samples.weight_ns[kept & moved].sum()) / whole if whole else 0.0
    if not portion:
        return rank
    making = (portion * rank.phase_ns["Fwd"]).astype(np.int64)
    return replace(
        rank,
        samples=replace(
            samples,
            phase=np.where(moved, PHASES.index("Data"), samples.phase),
            part=None if samples.part is None else np.where(moved, PARTS.index("in_step"), samples.part),
        ),
        phase_ns={**rank.phase_ns, "Fwd": rank.phase_ns["Fwd"] - making, "Data": rank.phase_ns.get("Data", 0) + making},
    )
