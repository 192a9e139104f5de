"""Hard signals of evaluations: what is evaluated, how, how often, and what comes out."""

from __future__ import annotations

import math
from typing import Any, Literal

from trainflash.fidelity.checks import cadence
from trainflash.fidelity.outcome import Outcome, modes_in_words
from trainflash.fidelity.pairing import SAME_WORK, Pair

SIDES: tuple[Literal["baseline", "candidate"], ...] = ("baseline", "candidate")
_EACH_STEP = 0.8  # of the updates have an evaluation before them: it is a part of the step
Lines = dict[int, dict[str, Any]]  # by the update that they follow
_RESULTS_LIMIT = 1e-3  # relative, of sums over an evaluation; rounding in float32 moves them by 1e-6, averaged weights by 1e-2 and more


def inputs(pair: Pair) -> Outcome:
    """The same samples in the same mode, wherever both sides evaluate the same kind of network after the same update."""
    groups = _evaluations(pair)
    if not groups:
        return Outcome(None, "no evaluation was seen")
    outcomes = [_evaluated_inputs(old, new) for old, new in groups]
    wrong = next((outcome for outcome in outcomes if outcome is not None and outcome.ok is False), None)
    if wrong is not None:
        return wrong
    shared = [(old[n], new[n]) for old, new in groups for n in sorted(set(old) & set(new))]
    if not shared:
        return Outcome(None, "no evaluation was seen on both sides after the same update")
    counts = {(before["forwards"], after["forwards"]) for before, after in shared if before["forwards"] != after["forwards"]}
    batches = "".join(f", in {a} forwards → {b}" for a, b in sorted(counts)[:1])
    return Outcome(True, f"the same samples in {len(shared)} evaluations{batches}")


def _evaluated_inputs(old: Lines, new: Lines) -> Outcome | None:
    """What is wrong with one group's inputs; None where nothing is."""
    known = {each for line in old.values() for each in _same_samples(line)}
    for n, line in sorted(new.items()):
        before = old.get(n)
        if before is None and old and not known & _same_samples(line):
            return Outcome(False, f"after update {n}: {line['samples']} samples that the baseline never evaluates at once")
        if before is None:
            continue
        if not _same_samples(before) & _same_samples(line):
            what = "other samples" if before["samples"] == line["samples"] else f"{before['samples']} samples → {line['samples']}"
            return Outcome(False, f"after update {n}: {what}")
        modes = [sorted({tuple(mode[1:]) for mode in each["modes"]}) for each in (before, line)]
        if modes[0] != modes[1]:
            return Outcome(False, f"after update {n}: {modes_in_words(modes[0])} → {modes_in_words(modes[1])}")
    return None


def _same_samples(line: dict[str, Any]) -> set[tuple[str, str, int]]:
    """What two lines of the same samples share: their contents, or these without padding, which other batches make wider or narrower."""
    return {(name, line[name], line["samples"]) for name in ("multiset", "trimmed") if name in line}


def results(pair: Pair) -> Outcome:
    """What the evaluated modules returned for the same samples after the same training: of other weights, or otherwise used?"""
    if not pair.bitwise:
        return Outcome(None, "the training itself differs")
    compared = 0
    for n, before, after in [(n, old[n], new[n]) for old, new in _evaluations(pair) for n in sorted(set(old) & set(new))]:
        if any(not line.get("results") or line["results"] != line["forwards"] or not line["outputs"][2] for line in (before, after)):
            continue
        (total, squares, count), (other, others_squares, others_count) = before["outputs"], after["outputs"]
        if count != others_count or (before["samples"], before["multiset"]) != (after["samples"], after["multiset"]):
            continue
        compared += 1
        size = max(squares, others_squares)
        far = max(abs(total - other) / math.sqrt(count * size), abs(squares - others_squares) / size) if size > 0 else 0.0
        if not far <= _RESULTS_LIMIT:
            return Outcome(False, f"after update {n}: other outputs for the same samples, relative difference {far:.2g}")
    return Outcome(True, f"the same outputs in {compared} evaluations") if compared else Outcome(None, "no outputs could be compared")


def cadences(pair: Pair) -> Outcome:
    """Each kind of network that is evaluated, by itself: one that answers in every step would hide how often the others are asked."""
    outcomes = [cadence(sorted(old), sorted(new), pair) for old, new in _evaluations(pair)]
    wrong = next((outcome for outcome in outcomes if outcome.ok is False), None)
    return wrong or next(iter(outcomes), cadence([], [], pair))


def _evaluations(pair: Pair) -> list[tuple[Lines, Lines]]:
    """Lines of both sides by update, a pair for each kind of network evaluated: its class, in training mode or not.

    A class that is in one mode on one side and in the other on the other side is one kind: that it changed is what must be said.
    """
    found: dict[tuple[str, bool], tuple[Lines, Lines]] = {}
    for index, side in enumerate(SIDES):
        for line in getattr(pair, side).evaluations:
            if line["forwards"] and line["n"] <= pair.closed_on(side):
                name, training = line.get("of") or ("", False)
                found.setdefault((name, training), ({}, {}))[index][pair.place(side, line["n"])] = line
    for name, training in list(found):
        lost, gained = found.get((name, training), ({}, {})), found.get((name, not training), ({}, {}))
        if lost[0] and not lost[1] and gained[1] and not gained[0]:
            found[(name, training)] = (lost[0], gained[1])
            del found[(name, not training)]
    return [_of_same_batches(*found[key], pair) for key in sorted(found)]


def _of_same_batches(old: Lines, new: Lines, pair: Pair) -> tuple[Lines, Lines]:
    """The lines of a kind of network, without those that are asked in each step about the step's own batch (a teacher, a target network)
    where the owner's batches are others: what it was asked is judged with the batches."""
    if len(old) < _EACH_STEP * pair.length or pair.rebatched:
        return old, new
    # What is asked after n updates is about the batch of the next one, whose relation is `relations[n]`.
    others = {n for n, relation in enumerate(pair.relations) if relation not in SAME_WORK}
    return tuple({n: line for n, line in lines.items() if n not in others} for lines in (old, new))  # type: ignore[return-value]
