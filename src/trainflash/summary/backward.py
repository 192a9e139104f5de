"""What backward's time is divided into: lines of the forward, what the engine does beside nodes, and Python that it calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from trainflash.schema import PHASES
from trainflash.stacks import Stack
from trainflash.summary.steady import Steady
from trainflash.trace import RankTrace, Samples
from trainflash.trace.calls import CallTrace

BESIDE = 0.3  # own: of backward, before what the engine does beside nodes is more than adding up gradients
NODE_NS = 10_000  # measured: the engine's own time for a node, recorded, is 6.5 to 7.7 µs; more on a busy machine
ALIKE, GROWN = 2.0, 1.5  # own: times as much beside nodes as in the record beside it; the same, times the ratio of their steps
WATCHED_NS = 15_000  # measured: what watching a call adds to its step, for the most part outside of the call's own time
_ENGINE = ("torch/autograd/graph.py", "_engine_run_backward")


class Divided:
    """What a moment in the engine is divided into: lines of the forward, by the recorded step that is nearest to its step."""

    def __init__(self, calls: tuple[CallTrace, ...], called: float) -> None:
        known = [(call, found) for call in calls if (found := _backwards(call))]
        recorded = [call for call, _ in known]
        beside = [_beside(call, called) if _seen_again(recorded, number) else 0.0 for number, call in enumerate(recorded)]
        self._known = [(found, part) for (_, found), part in zip(known, beside, strict=True)]
        self._steps = np.array([call.step for call, _ in known])

    def __bool__(self) -> bool:
        return bool(self._known)

    def at(self, step: int) -> tuple[float, Iterator[tuple[Stack, float]]]:
        """(part beside nodes, stacks of forward with their parts) of a moment of that step; all together 1."""
        portions, beside = self._known[int(np.argmin(np.abs(self._steps - step)))]
        return beside, ((stack, (1 - beside) * portion) for stack, portion in portions.items())


def _beside(call: CallTrace, called: float) -> float:
    """Of what backward spends in C, the part that lies beside nodes; 0 where that is no more than usual."""
    beyond_ns = max(0, call.beside_ns - NODE_NS * call.nodes)
    whole = beyond_ns + sum(row.backward_ns for row in call.rows)
    beside = max(0.0, beyond_ns / whole - called) if whole else 0.0
    return beside / (1 - called) if beside >= BESIDE and called < 1 else 0.0


def _seen_again(calls: list[CallTrace], number: int) -> bool:
    """Whether a recorded step beside this one has as much beside nodes: a process that takes the core in one step is no hook.

    What piles up may grow with the number of steps.
    """
    this, others = calls[number], [calls[at] for at in (number - 1, number + 1) if 0 <= at < len(calls)]
    most = [max(ALIKE, GROWN * this.step / max(1, other.step)) * other.beside_ns for other in others]
    return not others or this.beside_ns <= max(most)


def _backwards(call: CallTrace) -> dict[Stack, float]:
    """Part of backward's time by the stack of what it goes back through."""
    whole = sum(row.backward_ns for row in call.rows if row.phase != "Bwd")
    found: dict[Stack, float] = defaultdict(float)
    for row in call.rows:
        if row.backward_ns and row.phase != "Bwd" and row.stack:
            found[row.stack] += row.backward_ns / whole
    return found


def behind_engine(stack: Stack) -> Stack | None:
    """The frames that autograd's engine called; None where it is not on the stack."""
    for place in reversed(range(len(stack))):
        location = stack[place].location
        if location.file.endswith(_ENGINE[0]) and location.function.endswith(_ENGINE[1]):
            return stack[place + 1 :]
    return None


def in_python(samples: Samples, backward: np.ndarray) -> float:
    """Part of backward's time in Python that the engine called."""
    whole = int(samples.weight_ns[backward].sum())
    called = [index for index in np.flatnonzero(backward) if behind_engine(samples.stacks[samples.stack[index]])]
    return int(samples.weight_ns[called].sum()) / whole if whole else 0.0


def python_in_network(rank: RankTrace, part: Steady, samples: Samples, kept: np.ndarray) -> float | None:
    """What calls of torch leave of forward and update in the recorded step where that is least, and what the engine calls in backward."""
    if not rank.calls:
        return None
    whole = 0.0
    for phase in ("Fwd", "Opt"):
        spent = rank.phase_ns.get(phase)
        if spent is None or not part.wall_ns:
            continue
        left = []
        for call in rank.calls:
            rows = [row for row in call.rows if row.phase == phase]
            took = float(spent[call.step]) if call.step < len(spent) else 0.0
            known = sum(row.ns + WATCHED_NS * row.calls for row in rows)
            left.append(max(0.0, 1 - known / took) if took > 0 else 0.0)
        whole += min(left, default=0.0) * float(spent[part.kept].sum()) / part.wall_ns
    backward = kept & (samples.phase == PHASES.index("Bwd"))
    bwd = rank.phase_ns.get("Bwd")
    of_backward = float(bwd[part.kept].sum()) / part.wall_ns if bwd is not None else 0.0
    return whole + in_python(samples, backward) * of_backward
