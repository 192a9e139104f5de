"""Hard signals of evaluations: what is evaluated, how, how often, against which targets, and what comes out."""

from __future__ import annotations

from typing import Any

from trainflash.fidelity.checks import cadence
from trainflash.fidelity.drift import weights_distance
from trainflash.fidelity.evaluations import Lines, contents, distance, in_another_form, kinds, same_samples, same_values, shared
from trainflash.fidelity.outcome import Outcome, modes_in_words, some
from trainflash.fidelity.pairing import Pair

RESULTS_LIMIT = 1e-3  # relative, of sums over an evaluation; rounding in float32 moves them by 1e-6, averaged weights by 1e-2 and more
_TYPES = 10.0  # factor on it where the evaluation computes in other data types, which is named anyway
_ONE_NETWORK = 1e-6  # relative L2 of two sets of weights: as far as rounding takes two ways to the same average


def inputs(pair: Pair) -> Outcome:
    """The same samples in the same mode, wherever both sides evaluate the same kind of network after the same update."""
    groups = kinds(pair)
    if not groups:
        return Outcome(None, "no evaluation was seen")
    outcomes = [_evaluated_inputs(old, new, pair) for old, new in groups]
    wrong = next((outcome for outcome in outcomes if outcome is not None and outcome.ok is False), None)
    if wrong is not None:
        return wrong
    both = [(old[n], new[n]) for old, new in groups for n in sorted(set(old) & set(new))]
    if not both:
        return Outcome(None, "no evaluation was seen on both sides after the same update")
    counts = {(before["forwards"], after["forwards"]) for before, after in both if before["forwards"] != after["forwards"]}
    batches = "".join(f", in {a} forwards → {b}" for a, b in sorted(counts)[:1])
    return Outcome(True, f"the same samples in {len(both)} evaluations{batches}")


def _evaluated_inputs(old: Lines, new: Lines, pair: Pair) -> Outcome | None:
    """What is wrong with one group's inputs; None where nothing is."""
    known = {each for line in old.values() for each in contents(line)}
    for n, line in sorted(new.items()):
        before = old.get(n)
        if before is None and old and not known & contents(line) and not any(same_values(each, line) for each in old.values()):
            return Outcome(False, f"after update {n}: {line['samples']} samples that the baseline never evaluates at once")
        if before is None:
            continue
        if in_another_form(before, line, pair):
            pass
        elif not same_samples(before, line) or (pair.bitwise and not contents(before) & contents(line) and not _alike(before, line)):
            what = "other samples" if before["samples"] == line["samples"] else f"{before['samples']} samples → {line['samples']}"
            return Outcome(False, f"after update {n}: {what}")
        modes = [sorted({tuple(mode[1:]) for mode in each["modes"]}) for each in (before, line)]
        if modes[0] != modes[1]:
            return Outcome(False, f"after update {n}: {modes_in_words(modes[0])} → {modes_in_words(modes[1])}")
    return None


def _alike(before: dict[str, Any], after: dict[str, Any]) -> bool:
    far = distance(before, after)
    return far is not None and far <= RESULTS_LIMIT * _factor(before, after)


def types(pair: Pair) -> Outcome:
    """The data types that evaluations compute in: autocast, and what the networks return."""
    compared = 0
    for n, before, after in shared(pair):
        for name in ("autocast", "types"):
            old, new = sorted(before.get(name, ())), sorted(after.get(name, ()))
            if old and new and old != new:
                return Outcome(False, f"after update {n}: {'outputs' if name == 'types' else name} {some(old)} → {some(new)}")
            compared += bool(old and new)
    return Outcome(True, f"equal in {compared} comparisons") if compared else Outcome(None, "no evaluation was seen on both sides")


def _factor(before: dict[str, Any], after: dict[str, Any]) -> float:
    return _TYPES if any(sorted(before.get(name, ())) != sorted(after.get(name, ())) for name in ("autocast", "types")) else 1.0


def networks(pair: Pair) -> Outcome:
    """How many different networks are evaluated after each update: one that stands in for another is missing."""
    asked = {line["n"] for stream in (pair.baseline, pair.candidate) for line in stream.evaluations if line.get("step")}
    compared = 0
    for n, before, after in shared(pair):
        if n in asked or any(line.get("unweighed") or not all(line["weights"]) for line in (before, after)):
            continue
        old, new = _different(before["weights"]), _different(after["weights"])
        compared += bool(old and new)
        if old and new and old != new:
            return Outcome(False, f"after update {n}: {old} different networks are evaluated → {new}")
    return (
        Outcome(True, f"as many in {compared} evaluations") if compared else Outcome(None, "no weights of evaluated networks were recorded")
    )


def _different(weights: list[dict[str, Any]]) -> int:
    found: list[dict[str, Any]] = []
    for each in weights:
        far = [weights_distance(known, each) for known in found]
        if all(distance is None or distance > _ONE_NETWORK for distance in far):
            found.append(each)
    return len(found)


def targets(pair: Pair) -> Outcome:
    """What the outputs of the same samples are scored against, by each of torch's loss functions that both sides call."""
    compared = 0
    for n, before, after in shared(pair):
        if not same_samples(before, after):
            continue
        padded = before.get("multiset") != after.get("multiset")
        for name in sorted(before.get("scores", {}).keys() & after.get("scores", {}).keys()):
            old, new = before["scores"][name], after["scores"][name]
            compared += 1
            if not _so_many_times(old, new) and not (padded and old[2] == new[2]):
                what = f"{old[0]} targets → {new[0]}" if old[0] != new[0] else f"{old[0]} other targets"
                return Outcome(False, f"after update {n}: {name} is given {what} for the same samples")
    return Outcome(True, f"the same in {compared} evaluations") if compared else Outcome(None, "no loss function was seen on both sides")


def _so_many_times(old: list[Any], new: list[Any]) -> bool:
    """The same targets; or all of them a whole number of times, where the same score is asked for more than once."""
    (few, content), (many, more) = sorted(((old[0], int(old[1], 16)), (new[0], int(new[1], 16))))
    return few > 0 and many % few == 0 and (many // few * content - more) % (1 << 64) == 0 if few else many == 0


def results(pair: Pair) -> Outcome:
    """What the evaluated modules returned for the same samples after the same training: of other weights, or otherwise used?"""
    if not pair.bitwise:
        return Outcome(None, "the training itself differs")
    compared = 0
    for n, before, after in shared(pair):
        far = distance(before, after)
        if far is None:
            continue
        compared += 1
        if not far <= RESULTS_LIMIT * _factor(before, after):
            return Outcome(False, f"after update {n}: other outputs for the same samples, relative difference {far:.2g}")
    return Outcome(True, f"the same outputs in {compared} evaluations") if compared else Outcome(None, "no outputs could be compared")


def cadences(pair: Pair) -> Outcome:
    """Each kind of network that is evaluated, by itself: one that answers in every step would hide how often the others are asked."""
    outcomes = [cadence(sorted(old), sorted(new), pair) for old, new in kinds(pair)]
    wrong = next((outcome for outcome in outcomes if outcome.ok is False), None)
    return wrong or next(iter(outcomes), cadence([], [], pair))
