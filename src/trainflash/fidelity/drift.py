"""Signals that rounding moves: losses, gradient norms, weights. What is too far apart is for `judgement`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainflash.fidelity import evaluations
from trainflash.fidelity.pairing import Pair

EARLY_UPDATES = 20  # weights separate honest from broken within the first 20 updates, later ones do not
_EARLY_GRADIENTS = 3
_LATE = 2  # equal updates before a difference that begins late: those of an optimizer's rounding begin with the second loss


@dataclass(frozen=True)
class Drift:
    """How far two runs of one program are apart. Distances of weights and gradients are relative; None: not measured."""

    updates: int
    mean_loss: float | None  # mean |Δ| of the loss per update, where both are finite
    max_loss: float | None
    early_weights: float | None  # largest relative L2 distance in the first 20 updates, and in 20 after a first difference that comes late
    late_weights: float | None  # at the last update that both recorded
    early_gradients: float | None  # largest relative difference of the norms in the first 3 updates that are not bitwise the same
    first_loss: float | None  # at the first update that is not: relative to the usual size of the losses up to there
    early_steps: float | None  # relative difference of what the second update changed
    first_buffers: float | None  # running statistics and the like after each optimizer's first update, before rounding can have grown
    evaluated_weights: float | None  # of the modules that evaluations used (an average of weights, running statistics)
    evaluated_outputs: float | None  # of what came out of evaluations of the same samples


def drift(pair: Pair) -> Drift:
    """Distances between the two sides of `pair`."""
    deltas = [abs(old.loss - new.loss) for old, new in pair.matched if _finite(old.loss) and _finite(new.loss)]
    far = [(old["n"], distance) for old, new in pair.weights if (distance := weights_distance(old, new)) is not None]
    begin = onset(pair)
    end = pair.prefix if begin else pair.length  # later updates of another work show what became of the difference, not what it was
    early = [distance for n, distance in far if n <= EARLY_UPDATES or n <= min(begin + EARLY_UPDATES, end)]
    norms = [(old.grad_norm, new.grad_norm) for old, new in list(pair.matched)[begin : min(begin + _EARLY_GRADIENTS, end)]]
    return Drift(
        updates=pair.length,
        mean_loss=math.fsum(deltas) / len(deltas) if deltas else None,
        max_loss=max(deltas, default=None),
        early_weights=max(early, default=None),
        late_weights=far[-1][1] if far else None,
        early_gradients=max((relative(abs(a - b), a) for a, b in norms if a is not None and b is not None), default=None),
        first_loss=_first_loss(pair, begin) if begin < end else None,
        early_steps=_second_step(pair),
        first_buffers=_first_buffers(pair),
        evaluated_weights=_evaluated(pair),
        evaluated_outputs=_outputs(pair),
    )


def onset(pair: Pair) -> int:
    """Index of the first update that is not bitwise the same; 0 unless the difference comes late."""
    return pair.alike if _LATE <= pair.alike < pair.length else 0


def _first_loss(pair: Pair, at: int) -> float | None:
    old, new = (stream.updates[at].loss for stream in (pair.baseline, pair.candidate))
    known = [update.loss for update in pair.baseline.updates[: at + 1] if _finite(update.loss)]
    if not _finite(old) or not _finite(new):
        return None
    return relative(abs(old - new), math.hypot(*known) / math.sqrt(len(known)))


def widest(drifts: Sequence[Drift]) -> Drift:
    """The largest of each distance over several processes; the mean loss is the mean of theirs."""

    def most(name: str) -> float | None:
        return max((value for each in drifts if (value := getattr(each, name)) is not None), default=None)

    means = [each.mean_loss for each in drifts if each.mean_loss is not None]
    return Drift(
        updates=min(each.updates for each in drifts),
        mean_loss=math.fsum(means) / len(means) if len(means) == len(drifts) else None,
        max_loss=most("max_loss"),
        early_weights=most("early_weights"),
        late_weights=most("late_weights"),
        early_gradients=most("early_gradients"),
        first_loss=most("first_loss"),
        early_steps=most("early_steps"),
        first_buffers=most("first_buffers"),
        evaluated_weights=most("evaluated_weights"),
        evaluated_outputs=most("evaluated_outputs"),
    )


def weights_distance(old: dict[str, Any], new: dict[str, Any]) -> float | None:
    """Relative L2 distance of two recorded sets of weights and buffers, estimated from their sketches (within about 12 %)."""
    if not old.get("sketch") or not new.get("sketch"):
        return None
    if old.get("digest") == new.get("digest"):
        return 0.0
    if old["values"] != new["values"] or len(old["buffer_sketch"]) != len(new["buffer_sketch"]):
        return math.inf
    return max(relative(math.dist(old["sketch"], new["sketch"]), old["norm"]), _buffers(old, new))


def _buffers(old: dict[str, Any], new: dict[str, Any]) -> float:
    return relative(math.dist(old["buffer_sketch"], new["buffer_sketch"]), old["buffer_norm"]) if old["buffer_sketch"] else 0.0


def _first_buffers(pair: Pair) -> float | None:
    first = [both for both in pair.weights if both[0].get("step") == 1 and all(line.get("buffer_sketch") for line in both)]
    found = [_buffers(old, new) for old, new in first if len(old["buffer_sketch"]) == len(new["buffer_sketch"])]
    return max(found, default=None)


def _finite(loss: float | None) -> bool:
    return loss is not None and math.isfinite(loss)


def relative(distance: float, size: float) -> float:
    if not math.isfinite(distance) or not math.isfinite(size):
        return math.inf
    return distance / size if size else (math.inf if distance else 0.0)


def _second_step(pair: Pair) -> float | None:
    """The first update is left out: what it changed is not known without the initial weights."""
    by_optimizer: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for old, new in pair.weights:
        by_optimizer.setdefault(old["optimizer"], []).append((old, new))
    found = []
    for lines in by_optimizer.values():
        (first, also_first), (second, also_second) = (*lines, *lines)[:2]
        if (first.get("step"), second.get("step")) != (1, 2) or not all(line.get("sketch") for pairs in lines[:2] for line in pairs):
            continue
        if first["values"] != also_first["values"]:
            continue
        ours = [b - a for a, b in zip(first["sketch"], second["sketch"], strict=True)]
        theirs = [b - a for a, b in zip(also_first["sketch"], also_second["sketch"], strict=True)]
        found.append(relative(math.dist(ours, theirs), math.hypot(*ours)))
    return max(found, default=None)


def _evaluated(pair: Pair) -> float | None:
    """Each network of the baseline beside the nearest one that the candidate evaluates after the same update."""
    distances = []
    for _, before, after in evaluations.shared(pair):
        for old in filter(None, before["weights"]):
            far = [weights_distance(old, new) for new in after["weights"] if new]
            distances += [min(known)] if (known := [each for each in far if each is not None]) else []
    return max(distances, default=None)


def _outputs(pair: Pair) -> float | None:
    found = [far for _, before, after in evaluations.shared(pair) if (far := evaluations.distance(before, after)) is not None]
    return math.inf if any(map(math.isnan, found)) else max(found, default=None)
