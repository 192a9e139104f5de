"""Signals that rounding moves: losses, gradient norms, weights, contents of checkpoints. What is too far apart is for `judgement`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainflash.fidelity.checks import cadence, schedule
from trainflash.fidelity.outcome import Outcome
from trainflash.fidelity.pairing import Pair
from trainflash.fidelity.record import Stream

EARLY_UPDATES = 20  # weights separate honest from broken within the first 20 updates, later ones do not
_EARLY_GRADIENTS = 3
_MISSED = 4  # checkpoints of the baseline without one of the candidate, before its end has shown that it makes none
_SAVED_LIMIT = 0.01  # relative L2 of what is saved, or 10 times that of the weights in training where they have drifted farther


@dataclass(frozen=True)
class Drift:
    """How far two runs of one program are apart. Distances of weights and gradients are relative; None: not measured."""

    updates: int
    mean_loss: float | None  # mean |Δ| of the loss per update, where both are finite
    max_loss: float | None
    early_weights: float | None  # largest relative L2 distance up to update 20
    late_weights: float | None  # at the last update that both recorded
    early_gradients: float | None  # largest relative difference of the norms in updates 1 to 3
    early_steps: float | None  # relative difference of what the second update changed
    evaluated_weights: float | None  # of the modules that evaluations used (an average of weights, running statistics)


def drift(pair: Pair) -> Drift:
    """Distances between the two sides of `pair`."""
    deltas = [abs(old.loss - new.loss) for old, new in pair.matched if _finite(old.loss) and _finite(new.loss)]
    far = [(old["n"], distance) for old, new in pair.weights if (distance := weights_distance(old, new)) is not None]
    early = [distance for n, distance in far if n <= EARLY_UPDATES]
    norms = [(old.grad_norm, new.grad_norm) for old, new in list(pair.matched)[:_EARLY_GRADIENTS]]
    return Drift(
        updates=pair.length,
        mean_loss=math.fsum(deltas) / len(deltas) if deltas else None,
        max_loss=max(deltas, default=None),
        early_weights=max(early, default=None),
        late_weights=far[-1][1] if far else None,
        early_gradients=max((_relative(abs(a - b), a) for a, b in norms if a is not None and b is not None), default=None),
        early_steps=_second_step(pair),
        evaluated_weights=_evaluated(pair),
    )


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
        early_steps=most("early_steps"),
        evaluated_weights=most("evaluated_weights"),
    )


def weights_distance(old: dict[str, Any], new: dict[str, Any]) -> float | None:
    """Relative L2 distance of two recorded sets of weights and buffers, estimated from their sketches (within about 12 %)."""
    if not old.get("sketch") or not new.get("sketch"):
        return None
    if old.get("digest") == new.get("digest"):
        return 0.0
    if old["values"] != new["values"] or len(old["buffer_sketch"]) != len(new["buffer_sketch"]):
        return math.inf
    trained = _relative(math.dist(old["sketch"], new["sketch"]), old["norm"])
    buffers = _relative(math.dist(old["buffer_sketch"], new["buffer_sketch"]), old["buffer_norm"]) if old["buffer_sketch"] else 0.0
    return max(trained, buffers)


def _finite(loss: float | None) -> bool:
    return loss is not None and math.isfinite(loss)


def _relative(distance: float, size: float) -> float:
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
        found.append(_relative(math.dist(ours, theirs), math.hypot(*ours)))
    return max(found, default=None)


def _evaluated(pair: Pair) -> float | None:
    later = {(line["n"], *line.get("of", ())): line["weights"] for line in pair.candidate.evaluations if line["n"] <= pair.closed}
    distances = []
    for line in pair.baseline.evaluations:
        both = zip(line["weights"], later.get((line["n"], *line.get("of", ())), ()), strict=False)
        distances += [distance for old, new in both if old and new and (distance := weights_distance(old, new)) is not None]
    return max(distances, default=None)


def checkpoints(pair: Pair) -> Outcome:
    """Contents of checkpoints: of the same plain values (an epoch, a step), else of the same update, else of the moment of saving."""
    old, new = _checkpoints(pair)
    if not old:
        return Outcome(None, "no checkpoint was seen")
    if not new and (pair.candidate_whole or (len(old) >= _MISSED and "cadence" not in pair.agreed)):
        return Outcome(False, f"{len(old)} checkpoints → none")
    if not new and "cadence" in pair.agreed:
        return Outcome(None, f"{len(old)} checkpoints → none so far; its own end was not seen")
    torn = _torn(pair.candidate)
    if torn and not _torn(pair.baseline):
        return Outcome(False, torn)
    live = max((distance for both in pair.weights if (distance := weights_distance(*both)) is not None), default=math.inf)
    limit = None if pair.bitwise else max(_SAVED_LIMIT, 10 * live)
    comparable = pair.prefix == pair.length
    rescheduled = schedule(pair).ok is False
    waiting: dict[int, list[dict[str, Any]]] = {}
    for line in old:
        waiting.setdefault(pair.place("baseline", line["n"]), []).append(line)
    compared = 0
    for line in new:
        here = waiting.get(pair.place("candidate", line["n"])) or []
        before = _counterpart(line, here, old)
        if any(before is each for each in here):
            here[:] = [each for each in here if each is not before]
        if "keys" not in line or (before is not None and "keys" not in before):
            continue  # written, but nobody saw what
        if before is None:
            different = (
                "" if _is_of_its_moment(line, old) else "it holds neither the weights of that moment nor a state that the baseline saves"
            )
        else:
            different = _content(before, line, limit, values=comparable, rescheduled=rescheduled)
        compared += 1
        if different:
            return Outcome(False, f"after update {line['n']}: {different}")
    if not compared:
        return Outcome(None, "no checkpoint's contents were seen on both sides after the same update")
    return Outcome(True, f"{compared} checkpoints with {'the same contents' if comparable else 'contents of the same kind'}")


def _counterpart(line: dict[str, Any], here: list[dict[str, Any]], old: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The baseline's checkpoint that this one must equal: the one with the same plain values, of the same place, or that is equal."""
    known = [each.get("scalars") for each in old]
    if line.get("scalars") and known.count(line["scalars"]) == 1:
        return old[known.index(line["scalars"])]
    if here:
        return here[0]
    return next(
        (each for each in old if "digest" in line and each.get("digest") == line["digest"] and each.get("keys") == line["keys"]), None
    )


def _is_of_its_moment(line: dict[str, Any], old: list[dict[str, Any]]) -> bool:
    """Whether a checkpoint made where the baseline makes none holds as many of the live weights as those of the baseline do."""
    usual = [each["current"] for each in old if each.get("live")]
    if not usual or not line.get("live"):
        return any(each.get("keys") == line.get("keys") for each in old)
    return line["current"] >= min(usual) and any(each.get("keys") == line["keys"] for each in old)


def _torn(stream: Stream) -> str:
    """A file whose contents are none of the states that were handed over to be saved."""
    for line in stream.stored:
        if "unreadable" in line:
            return f"{line['target']}, saved after update {line['n']}, cannot be read back ({line['unreadable']})"
        handed = {each.get("digest") for each in stream.checkpoints}
        if line["digest"] not in handed:
            return f"{line['target']}, saved after update {line['n']}, holds other values than were handed over"
    return ""


def _content(old: dict[str, Any], new: dict[str, Any], limit: float | None, *, values: bool, rescheduled: bool) -> str:
    """What differs, "" for nothing. `limit` None: the training is bitwise the same, and so must be what it saves. Without `values` only
    the kind of the contents is compared: the training was another one, by the owner's leave."""
    if old["keys"] != new["keys"]:
        lost, added = sorted(set(old["names"]) - set(new["names"])), sorted(set(new["names"]) - set(old["names"]))
        if rescheduled and not any(name.endswith("]") for name in (*lost, *added)):
            return ""  # plain values of a scheduler that the owner has exchanged by name
        parts = [f"{word} {names[0]} and {len(names) - 1} more" for word, names in (("without", lost), ("with", added)) if names]
        return f"the saved object differs: {', '.join(parts) or 'in its keys'}"
    moved = old.get("scalars") != new.get("scalars") or not values
    if moved and old.get("live") and new.get("live") == old["live"] and new["current"] < old["current"]:
        return f"{old['current']} of {old['live']} live weights are saved as they are → {new['current']}"
    if old["digest"] == new["digest"] or not values:
        return ""
    if limit is None:
        return "other values are saved although the training is bitwise the same"
    distance = _relative(math.dist(old["sketch"], new["sketch"]), old["norm"])
    return f"saved values are {distance:.2g} apart (relative L2)" if distance > limit else ""


def checkpoint_cadence(pair: Pair) -> Outcome:
    old, new = _checkpoints(pair)
    return cadence([pair.place("baseline", line["n"]) for line in old], [pair.place("candidate", line["n"]) for line in new], pair)


def _checkpoints(pair: Pair) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    old = [line for line in pair.baseline.checkpoints if line["n"] <= pair.closed_on("baseline")]
    new = [_when_taken(line, old, pair) for line in pair.candidate.checkpoints if line["n"] <= pair.closed_on("candidate")]
    return old, sorted(new, key=lambda line: int(line["n"]))


def _when_taken(line: dict[str, Any], old: list[dict[str, Any]], pair: Pair) -> dict[str, Any]:
    """The checkpoint; what another thread wrote counts where its contents were taken: at the baseline's newest before it, if equal."""
    if line.get("thread") != "other" or pair.rebatched or "keys" not in line:
        return line
    before = max((each for each in old if each["n"] <= line["n"]), key=lambda each: int(each["n"]), default=None)
    if before is None or before.get("keys") != line["keys"]:
        return line
    same = before.get("digest") == line.get("digest") or (line.get("scalars") and before.get("scalars") == line["scalars"])
    return {**line, "n": before["n"]} if same else line
