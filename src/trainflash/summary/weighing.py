"""Samples → call stacks with their times, those of backward divided among the lines of the forward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from trainflash.schema import PHASES, Location
from trainflash.stacks import Stack, loop_lines, network_lines, owners
from trainflash.summary.backward import Divided, behind_engine, in_python
from trainflash.trace import RankTrace, Samples

NETWORK = "Fwd"  # a forward with its backward


@dataclass(frozen=True)
class Weighed:
    """A stack with its time: of one sample, or of what one sample of backward is divided into."""

    stack: Stack
    phase: str  # NETWORK for both ways
    backward: bool
    ns: float
    step: int
    beside: bool = False  # in backward, beside nodes


def weighed(samples: Samples, chosen: np.ndarray, rank: RankTrace) -> Iterator[Weighed]:
    """The stacks of the `chosen` samples. Backward runs in C: what no Python frame explains there is divided as recorded steps tell."""
    divided = Divided(rank.calls, in_python(samples, chosen & (samples.phase == PHASES.index("Bwd"))))
    for index in np.flatnonzero(chosen):
        stack, phase = samples.stacks[samples.stack[index]], PHASES[samples.phase[index]]
        ns, step = int(samples.weight_ns[index]), int(samples.step[index])
        if phase == "Bwd":
            if behind_engine(stack) == () and divided:
                beside, portions = divided.at(step)
                if beside:
                    yield Weighed(stack, NETWORK, True, beside * ns, step, beside=True)
                yield from (Weighed(other, NETWORK, True, portion * ns, step) for other, portion in portions)
            else:
                yield Weighed(stack, NETWORK, True, ns, step)
            continue
        if phase == "Other" and rank.forward_lines:
            own = owners(stack)
            alone = own is not None and not any(frame.kind == "library" for frame in stack[own + 1 :])
            if alone and stack[own].location in rank.forward_lines:  # a library's call there may be anything
                phase = NETWORK
        yield Weighed(stack, phase, False, ns, step)


def standing_for_more(stacks: Iterable[Weighed]) -> tuple[frozenset[Location], frozenset[Location]]:
    """(lines that stand for a loop in a library, these and those that call a library's whole network)."""
    found = list(stacks)
    loops = loop_lines((each.stack, "Bwd" if each.backward else each.phase, each.ns) for each in found)
    return loops, loops | network_lines((each.stack, each.phase, each.ns) for each in found)
