"""Evaluations of both sides, paired: which lines are about the same kind of network, and how far apart is what came out of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from trainflash.fidelity.pairing import SAME_WORK, Pair

Lines = dict[int, dict[str, Any]]  # by the update that they follow
SIDES: tuple[Literal["baseline", "candidate"], ...] = ("baseline", "candidate")
_EACH_STEP = 0.8  # of the updates have an evaluation before them: it is a part of the step
_HASHES, _TOTALS, _LISTS = ("multiset", "trimmed", "elements", "batches"), ("outputs", "means"), ("modes", "types", "autocast", "weights")


def kinds(pair: Pair) -> list[tuple[Lines, Lines]]:
    """Lines of both sides by update, a pair for each kind of network evaluated, in training mode or not.

    A kind that is in one mode on one side and in the other on the other side is one kind: that it changed is what must be said. Forwards
    about the batch of their own step are none where nearly each update has them: what they answer shows in the losses. Nor is a teacher's
    pass ahead of the training, in place of these.
    """
    sides = [[line for line in getattr(pair, side).evaluations if line["forwards"] and line["n"] <= pair.closed_on(side)] for side in SIDES]
    name = _naming(sides)
    found: dict[tuple[str, bool], tuple[Lines, Lines]] = {}
    steps: dict[tuple[str, bool], tuple[Lines, Lines]] = {}
    for index, side in enumerate(SIDES):
        for line in sides[index]:
            key, place = (name(line), _of(line)[1]), pair.place(side, line["n"])
            lines = (steps if line.get("step") else found).setdefault(key, ({}, {}))[index]
            lines[place] = _added(lines[place], line) if place in lines else line
    for key, both in steps.items():
        asked = [len(lines) >= _EACH_STEP * _steps(pair, side) for lines, side in zip(both, SIDES, strict=True)]
        if asked == [True, False] and key in found and (pair.bitwise or pair.same_updates):
            _without_answers_ahead(*found[key])
        if not any(asked):
            for lines, more in zip(found.setdefault(key, ({}, {})), both, strict=True):
                lines.update({place: _added(lines[place], line) if place in lines else line for place, line in more.items()})
    for kind, training in list(found):
        lost, gained = found.get((kind, training), ({}, {})), found.get((kind, not training), ({}, {}))
        if lost[0] and not lost[1] and gained[1] and not gained[0]:
            found[(kind, training)] = (lost[0], gained[1])
            del found[(kind, not training)]
    return [_of_same_batches(*found[key], pair) for key in sorted(found)]


def _without_answers_ahead(old: Lines, new: Lines) -> None:
    """Leave out what only the candidate asks of a network that the baseline asks in each step: a teacher whose answers are made ahead.

    The training that follows is the same, so that the answers are.
    """
    for place in [place for place in new if place not in old]:
        del new[place]


def shared(pair: Pair) -> list[tuple[int, dict[str, Any], dict[str, Any]]]:
    """`(update, baseline's line, candidate's line)` wherever both sides evaluate the same kind of network after the same update."""
    return [(n, old[n], new[n]) for old, new in kinds(pair) for n in sorted(set(old) & set(new))]


def _of(line: dict[str, Any]) -> tuple[str, bool]:
    name, training = line.get("of") or ("", False)
    return name, training


def _naming(sides: list[list[dict[str, Any]]]) -> Callable[[dict[str, Any]], str]:
    """What a kind of network is called: its parameters and its class, without the class where the other side calls it otherwise."""
    classes: list[dict[str, set[str]]] = [{}, {}]
    for known, lines in zip(classes, sides, strict=True):
        for line in lines:
            known.setdefault(line.get("net", _of(line)[0]), set()).add(_of(line)[0])

    def name(line: dict[str, Any]) -> str:
        net, kind = line.get("net", _of(line)[0]), _of(line)[0]
        if net not in classes[0] or net not in classes[1]:
            return kind
        return f"{net} {kind}" if classes[0][net] == classes[1][net] else net

    return name


def _added(line: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two lines of one kind of network after the same update."""
    found = {**line, **{name: line[name] + more[name] for name in ("forwards", "samples", "results") if name in line}}
    found |= {name: f"{(int(line[name], 16) + int(more[name], 16)) % (1 << 64):x}" for name in _HASHES if name in line}
    found |= {name: [a + b for a, b in zip(line[name], more[name], strict=True)] for name in _TOTALS if name in line}
    found |= {name: line[name] + [each for each in more[name] if each not in line[name]] for name in _LISTS if name in line}
    scores = dict(line.get("scores", {}))
    for name, (count, full, trimmed, total) in more.get("scores", {}).items():
        known = scores.get(name, [0, "0", "0", 0.0])
        sums = [f"{(int(a, 16) + int(b, 16)) % (1 << 64):x}" for a, b in ((known[1], full), (known[2], trimmed))]
        scores[name] = [known[0] + count, *sums, None if total is None or known[3] is None else known[3] + total]
    return {**found, "scores": scores}


def _steps(pair: Pair, side: Literal["baseline", "candidate"]) -> float:
    """Steps of the training: each optimizer makes an update in it."""
    return max(1.0, pair.closed_on(side) / max(1, len({update.optimizer for update in getattr(pair, side).updates})))


def _of_same_batches(old: Lines, new: Lines, pair: Pair) -> tuple[Lines, Lines]:
    """The lines of a kind of network, without those that are asked in each step about the step's own batch (a teacher, a target network)
    where the owner's batches are others: what it was asked is judged with the batches."""
    if len(old) < _EACH_STEP * pair.length or pair.rebatched:
        return old, new
    # What is asked after n updates is about the batch of the next one, whose relation is `relations[n]`.
    others = {n for n, relation in enumerate(pair.relations) if relation not in SAME_WORK}
    return tuple({n: line for n, line in lines.items() if n not in others} for lines in (old, new))  # type: ignore[return-value]


def contents(line: dict[str, Any]) -> set[tuple[str, str, int]]:
    """What two lines of the same samples share: their contents, or these without padding, which other batches make wider or narrower."""
    return {(name, line[name], line["samples"]) for name in ("multiset", "trimmed") if name in line}


def same_values(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """The same numbers in another layout, such as single vectors beside batches of them; as many outputs say that they were read alike."""
    elements = before.get("elements")
    return bool(elements) and elements == after.get("elements") and _whole(before, after) and before["outputs"][2] == after["outputs"][2]


def in_another_form(before: dict[str, Any], after: dict[str, Any], pair: Pair) -> bool:
    """Whether these may be the same samples in the form in which the training gets them too: to the bit the same comes out of them."""
    alike = _whole(before, after) and before["samples"] == after["samples"] and before["outputs"][2] > 0
    return "encoded" in pair.relations and alike and before["outputs"] == after["outputs"]


def same_samples(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return bool(contents(before) & contents(after)) or same_values(before, after)


def _whole(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether the outputs of all forwards of both are known."""
    return all(line.get("results") and line["results"] == line["forwards"] for line in (before, after))


def distance(before: dict[str, Any], after: dict[str, Any]) -> float | None:
    """How far apart the outputs for the same samples are, and what loss functions made of them; relative. None: cannot be compared."""
    found = []
    if _whole(before, after) and same_samples(before, after) and before["outputs"][2] == after["outputs"][2] > 0:
        found.append(_apart(before["outputs"], after["outputs"]))
    divided_alike = before.get("batches") and before["batches"] == after.get("batches")  # then means over batches are the same too
    if divided_alike and _whole(before, after) and before["means"][2] == after["means"][2] > 0:
        found.append(_apart(before["means"], after["means"]))
    for name, score in before.get("scores", {}).items():
        other = after.get("scores", {}).get(name)
        if other and score[:2] == other[:2] and score[3] is not None and other[3] is not None and score[3] != other[3]:
            found.append(abs(score[3] - other[3]) / max(abs(score[3]), abs(other[3])))
    return None if not found else math.nan if any(map(math.isnan, found)) else max(found)


def _apart(old: list[float], new: list[float]) -> float:
    (total, squares, count), (other, others_squares, _) = old, new
    if all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(old, new, strict=True)):
        return 0.0
    size = max(squares, others_squares)
    far = (abs(total - other) / math.sqrt(count * size), abs(squares - others_squares) / size) if size > 0 else (0.0, 0.0)
    return math.nan if any(map(math.isnan, (*old, *new))) else max(far)
