"""Hard signals of the data: which samples, in which order and shape, with which targets.

A sample is known by the bytes that reach the model, without the zeros that pad it; where augmentation draws it anew each time, by the key
under which the loader draws it from its data set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from trainflash.fidelity import aims, drawn_by_step
from trainflash.fidelity.outcome import Outcome, has_inputs, no_inputs, some
from trainflash.fidelity.pairing import SAME_WORK, Pair, epoch_starts
from trainflash.fidelity.record import Stream, Update

_DRAWN_ANEW = 1.5  # distinct inputs for each sample of the data set: augmented, or padded by the batch's longest
_LEAST_ALIKE, _EPOCHS_APART = 0.003, 2.0  # relative; times the range of the mean square over the baseline's own epochs
_TRAINS_ALIKE = "which trains to the same bits"
_DRAWN_ALIKE = 0.05  # relative; another order of the same samples draws other values of the same kind
_FEWER = 0.05  # of the distinct inputs
_SPREAD = 2.0  # times the root of their number: drawing with replacement moves the difference by 0.44 of it
_USED_AGAIN = 0.5  # own: of the inputs behind the first epoch, more than in the baseline; half of a cache is a cache
_LEAST_REPEATED = 8  # distinct samples: chance repeats the order of so many once in 40,320 times
_DEVIATIONS = 4  # standard deviations of a count that chance may make
_HASHES = 1 << 64  # sums of sample hashes are taken modulo this

Counted = tuple[int, int]  # the sum of an epoch's sample hashes, and its samples


def shapes(pair: Pair) -> Outcome:
    found = pair.first(lambda update: sorted(shape[shape.index("[") :] for shape in update.shapes))
    if found and _only_padded(pair):
        return Outcome(True, "the same samples but for the zeros that pad them")
    if found and "encoded" in pair.relations:
        return Outcome(True, f"{some(found[1])} → {some(found[2])}: another form of each sample, {_TRAINS_ALIKE}")
    if found:
        return Outcome(False, f"update {found[0]}: {some(found[1])} → {some(found[2])}")
    if not has_inputs(pair):
        return no_inputs()
    return Outcome(True, f"equal in {pair.length} updates")


def _only_padded(pair: Pair) -> bool:
    """Whether samples differ at most in how far they are padded, by update or over whole epochs."""
    if any(update.trimmed is None for both in pair.matched for update in both):
        return False
    if set(pair.relations) <= {*SAME_WORK, "order"}:
        return True
    return _all_alike(_whole_epochs(pair)) or dealt_otherwise(pair)


def samples(pair: Pair) -> Outcome:
    if not has_inputs(pair):
        return no_inputs()
    other = [index for index, relation in enumerate(pair.relations) if relation == "other"]
    if not other or (pair.rebatched and _same_sequence(pair)):
        form = f", each in another form, {_TRAINS_ALIKE}" if "encoded" in pair.relations else ""
        return Outcome(True, f"the same samples in each of {pair.length} updates{form}")
    first = pair.baseline.updates[other[0]]
    epochs = _whole_epochs(pair)
    distinct = distinct_samples(pair)
    if _all_alike(epochs) and not distinct[2]:
        return Outcome(True, f"the same samples in each of {len(epochs)} whole epochs, in another order from update {first.n} on")
    if dealt_otherwise(pair):
        return Outcome(True, f"all ranks together see the same samples in each of {len(epochs)} whole epochs, dealt out in another way")
    if (by_step := drawn_by_step.drawn(pair)) is not None:
        return by_step
    drawn = _drawn(pair) if pair.keys is not None else None
    if drawn is not None and drawn.ok and other[0] == 0 and pair.same_keys and not pair.rebatched and _same_streams(pair):
        return Outcome(False, f"update {first.n}: the same keys and the same random streams give other samples")
    if drawn is not None:
        return drawn
    counts = f"; distinct samples {distinct[0]} → {distinct[1]}" if distinct[0] and distinct[0] != distinct[1] else ""
    why = "" if epochs else "; no whole epoch was seen that could show the same samples in another order"
    return Outcome(False, f"update {first.n}: other samples ({len(other)} of {pair.length} updates){counts}{why}")


def _drawn(pair: Pair) -> Outcome | None:
    """By the keys of the data set, where the values of one sample are drawn anew each time; None where they are not."""
    assert pair.keys is not None
    old, new = pair.keys
    epoch = _epoch_length(pair)
    blocks = [(old[at : at + epoch], new[at : at + epoch]) for at in range(0, min(len(old), len(new)) - epoch + 1, epoch)]
    if not blocks:
        return None
    for number, (left, right) in enumerate(blocks, start=1):
        if len(set(left)) != len(set(right)) or (set(left) == set(old) and set(right) != set(left)):
            return Outcome(False, f"epoch {number}: {len(set(left))} distinct samples of the data set → {len(set(right))}")
    values = [_values(stream.updates) for stream in (pair.baseline, pair.candidate)]
    if values[0][0] <= len(set(old)) * _DRAWN_ANEW:
        return None
    starts = epoch_starts(pair.baseline, len(pair.baseline.updates))
    squares = [_values(pair.baseline.updates[begin:end])[1] for begin, end in pairwise(starts)]
    apart = _EPOCHS_APART * (max(squares) - min(squares)) if len(squares) > 1 else _DRAWN_ALIKE * values[0][1]
    limits = (_DRAWN_ALIKE * values[0][0], max(_LEAST_ALIKE * values[0][1], min(apart, _DRAWN_ALIKE * values[0][1])))
    for name, before, after, limit in zip(("distinct inputs", "mean square of the inputs"), *values, limits, strict=True):
        if abs(after - before) > limit:
            return Outcome(False, f"the same samples of the data set, but {name} {before:.5g} → {after:.5g}")
    return Outcome(True, f"the same samples of the data set in each of {len(blocks)} epochs; their values are drawn anew each time")


def _same_streams(pair: Pair) -> bool:
    """Whether all random streams that the first batch was drawn from are known to be the same on both sides."""
    first = next((both for both in pair.weights if both[0]["n"] == 1), None)
    if first is None or not first[0].get("random") or first[0]["random"] != first[1].get("random"):
        return False
    old, new = pair.baseline.workers, pair.candidate.workers
    count = 1 + max((line["worker"] for line in old), default=-1)
    known = [sorted(lines[:count], key=lambda line: int(line["worker"])) for lines in (old, new)]
    return known[0] == known[1]


def _epoch_length(pair: Pair) -> int:
    """Keys of the first epoch."""
    assert pair.keys is not None
    starts = epoch_starts(pair.baseline, len(pair.baseline.updates))
    if len(starts) > 1:
        return max(1, sum(len(update.keys or ()) for update in pair.baseline.updates[: starts[1]]))
    return len(pair.keys[0])


def _values(updates: Iterable[Update]) -> tuple[int, float]:
    """Distinct inputs, and the mean of their squares per sample."""
    updates = list(updates)
    distinct = {row for update in updates for row in update.rows or ()}
    count = sum(update.samples for update in updates)
    return len(distinct), sum(update.moments[1] for update in updates if len(update.moments) > 1) / max(1, count)


def _whole_epochs(pair: Pair) -> list[tuple[Counted, Counted]]:
    """Sum of the sample hashes, and samples, of each epoch that was seen from its begin to its end, on both sides.

    A program that ends at a number of steps breaks its last epoch off: where the baseline does, that one is compared on neither side.
    """
    ours, theirs = (_epochs(*side, pair) for side in ((pair.baseline, pair.baseline_whole), (pair.candidate, pair.candidate_whole)))
    broken_off = len(ours) > 1 and ours[-1][1] < ours[-2][1]
    return list(zip(ours[:-1] if broken_off else ours, theirs, strict=False))


def _all_alike(epochs: list[tuple[Counted, Counted]]) -> bool:
    return bool(epochs) and all(old == new for old, new in epochs)


def dealt_otherwise(pair: Pair) -> bool:
    """Whether each rank sees as many samples as before in each whole epoch, and all of them together the same ones."""
    ranks = [_whole_epochs(each) for each in (pair, *pair.beside)] if pair.beside else []
    if not all(ranks) or any(old[1] != new[1] for epochs in ranks for old, new in epochs):
        return False
    together = [tuple(sum(rank[side][0] for rank in epoch) % _HASHES for side in (0, 1)) for epoch in zip(*ranks, strict=False)]
    return bool(together) and all(old == new for old, new in together)


def _epochs(stream: Stream, whole: bool, pair: Pair) -> list[Counted]:
    length = len(stream.updates) if pair.rebatched else pair.length
    starts = list(epoch_starts(stream, length))
    if whole and length == len(stream.updates):
        starts.append(length)
    return [_sum(stream, begin, end) for begin, end in pairwise(starts)]


def _sum(stream: Stream, begin: int, end: int) -> Counted:
    """Without padding: it depends on the other samples of the batch."""
    inside = stream.updates[begin:end]
    return sum(int(update.trimmed[0] if update.trimmed else update.multiset, 16) for update in inside) % _HASHES, sum(
        update.samples for update in inside
    )


def _same_sequence(pair: Pair) -> bool:
    """Whether both sides show the same samples in the same order, however they are cut into batches."""
    if pair.same_keys:
        drawn = _drawn(pair)
        return drawn is None or bool(drawn.ok)
    old, new = ([row for update in stream.updates for row in update.rows or ()] for stream in (pair.baseline, pair.candidate))
    return bool(old) and bool(new) and all(left == right for left, right in zip(old, new, strict=False))


def distinct_samples(pair: Pair) -> tuple[int, int, int]:
    """Distinct samples of the baseline, of the candidate, and those of the candidate that the baseline's whole epochs never showed."""
    old = {row for update in pair.baseline.updates[: pair.length] for row in update.rows or ()}
    new = {row for update in pair.candidate.updates[: pair.length] for row in update.rows or ()}
    padded = any(update.trimmed and update.trimmed[0] != update.multiset for update in pair.baseline.updates)
    return len(old), len(new), 0 if padded else len(new - old)  # padding makes one sample several


def workers(pair: Pair) -> Outcome:
    """Random streams that making batches draws from must not be shared by workers, or by their starts, where the baseline's are not."""
    old, new = pair.baseline.workers, pair.candidate.workers
    if not new:
        return Outcome(None, "no workers")
    drawn = pair.candidate.draws
    for name in ("numpy", "python", "torch", "held"):
        before, after = ([line[name] for line in lines if name in line] for lines in (old, new))
        if name in drawn and len(set(before)) == len(before) and len(set(after)) < len(after):
            what = "the data set's own generators" if name == "held" else f"{name}'s random numbers"
            theirs = "each has its own" if before else "one process draws them all"
            streams = "one stream" if len(set(after)) == 1 else f"{len(set(after))} streams"
            evidence = f"{len(after)} starts of workers draw from {streams} of {what}; in the baseline {theirs}"
            return Outcome(False, evidence)
    return Outcome(True, f"{len(new)} starts of workers, none of which shares a random stream that it draws from")


def fresh(pair: Pair) -> Outcome:
    """Whether what the baseline draws anew in each epoch is drawn anew: its samples' random values, and their order."""
    old, new = (_inputs(stream, pair) for stream in (pair.baseline, pair.candidate))
    if not old or not new or set(pair.relations) <= SAME_WORK - {"encoded"}:
        return Outcome(True, "the same inputs in each update") if old and new else no_inputs()
    length = min(len(old), len(new))
    before, after = len(set(old[:length])), len(set(new[:length]))
    if _used_again(pair) or after < before - max(_FEWER * before, _SPREAD * math.sqrt(before)):
        return Outcome(False, f"of {length} inputs {before} are distinct → {after}: what was drawn anew is used again")
    epochs = [_orders(stream, pair) for stream in (pair.baseline, pair.candidate)]
    if all(len(each) > 1 for each in epochs) and not _repeats(epochs[0]) and _repeats(epochs[1]):
        return Outcome(False, "two epochs come in the same order → in the baseline each has an order of its own")
    if all(len(each) > 1 for each in epochs):
        return Outcome(True, f"{before} distinct inputs of {length} → {after}, and each epoch in an order of its own as before")
    return Outcome(None, f"{before} distinct inputs of {length} → {after}; no second epoch was seen")


def _inputs(stream: Stream, pair: Pair) -> list[str]:
    updates = stream.updates if pair.rebatched else stream.updates[: pair.length]
    return [] if any(update.inputs is None for update in updates) else [row for update in updates for row in update.inputs or ()]


def _used_again(pair: Pair) -> bool:
    """Whether behind the first epoch, of equal length on both sides, far more inputs are those of the first than in the baseline."""
    parts = []
    for stream in (pair.baseline, pair.candidate):
        updates = stream.updates if pair.rebatched else stream.updates[: pair.length]
        first = next(iter(epoch_starts(stream, len(updates))[1:]), len(updates))
        known = [row for update in updates[:first] for row in update.inputs or ()]
        later = [row for update in updates[first:] for row in update.inputs or ()]
        parts.append((len(known), len(later), sum(map(set(known).__contains__, later)) / max(1, len(later))))
    (old_length, _, before), (new_length, later_inputs, after) = parts
    alike = abs(old_length - new_length) <= _FEWER * old_length
    return alike and later_inputs >= _LEAST_REPEATED and after > before + _USED_AGAIN


def _orders(stream: Stream, pair: Pair) -> list[tuple[str, ...]]:
    """The order of samples in each epoch, by key where the loader draws by key; the last one may be broken off."""
    updates = stream.updates if pair.rebatched else stream.updates[: pair.length]
    starts = [*epoch_starts(stream, len(updates)), len(updates)]
    blocks = [updates[begin:end] for begin, end in pairwise(starts)]
    return [tuple(each for update in block for each in (update.keys or update.inputs or ())) for block in blocks]


def _repeats(epochs: list[tuple[str, ...]]) -> bool:
    """Whether an epoch begins as the one before it, over so many samples that chance does not."""
    pairs = [(one[: len(other)], other[: len(one)]) for one, other in pairwise(epochs)]
    return any(len(set(one)) >= _LEAST_REPEATED and one == other for one, other in pairs)


def unfinished(pair: Pair) -> str:
    """Why the updates that were seen cannot tell whether epochs stay what they were; "" where they can.

    What makes batches otherwise shows behind an epoch's end: caches hold what was drawn, loaders begin anew, orders come again.
    """
    if pair.baseline_whole or pair.keys is None:
        return ""
    if min(len(epoch_starts(stream, len(stream.updates))) for stream in (pair.baseline, pair.candidate)) > 1:
        return ""
    changed = pair.baseline.making != pair.candidate.making and bool(pair.baseline.draws)
    if changed or (not pair.same_updates and not {"order", "other"}.isdisjoint(pair.relations)):
        return "a second epoch was not seen, behind which a change in how batches are made would show: give more budget, or fewer rows"
    return ""


def input_values(pair: Pair) -> Outcome:
    found = next((index for index, relation in enumerate(pair.relations) if relation == "rounding"), None)
    if found is not None:
        return Outcome(False, f"update {pair.baseline.updates[found].n}: inputs agree but for rounding")
    return Outcome(True, "no input differs by rounding") if has_inputs(pair) else no_inputs()


def order(pair: Pair) -> Outcome:
    if not has_inputs(pair):
        return no_inputs()
    moved = {"order", "other"}
    found = next((index for index, relation in enumerate(pair.relations) if relation in moved), None)
    if found is None or (pair.rebatched and _same_sequence(pair)):
        return Outcome(True, f"the same order in {pair.length} updates")
    inside = "within the batch" if pair.relations[found] == "order" else "over the epoch"
    if pair.same_keys:
        return Outcome(False, f"update {pair.baseline.updates[found].n}: the same samples, whose random values are drawn in another order")
    return Outcome(False, f"update {pair.baseline.updates[found].n}: samples come in another order {inside}")


def targets(pair: Pair, limit: float = aims.LIMIT) -> Outcome:
    """Whether the same inputs meet the same targets; computed ones may be apart by rounding, up to `limit`."""
    compared = 0
    mixed = next((index for index, relation in enumerate(pair.relations) if relation == "partly"), None)
    if mixed is not None:
        return Outcome(False, f"update {pair.baseline.updates[mixed].n}: the same first inputs of the model meet other ones beside them")
    for relation, (old, new) in zip(pair.relations, pair.matched, strict=True):
        if relation in SAME_WORK and old.targets and new.targets:
            compared += 1
            if aims.relation(old, new, limit) == "other":
                return Outcome(False, f"update {old.n}: the same inputs meet other targets{_distance(old, new)}")
    for relation, (old, new) in zip(pair.relations, pair.matched, strict=True):
        if relation in SAME_WORK and aims.relation(old, new, limit) == "rounding":
            continue  # rows with their targets differ in bits, too
        if old.pairs and new.pairs and old.trimmed and new.trimmed and old.trimmed[0] == new.trimmed[0] and old.targets and new.targets:
            compared += 1
            if old.pairs != new.pairs:
                return Outcome(False, f"update {old.n}: the same inputs meet other targets")
    for number, (old_leaf, new_leaf) in _loader_leaves(pair):
        compared += 1
        if old_leaf != new_leaf:
            return Outcome(False, f"batch {number} of the loader: the same inputs come with other {old_leaf[0]} values")
    if again := _drawn_again(pair):
        return Outcome(False, "distinct targets {} of {} → {} of {}: values that were drawn anew are used again".format(*again))
    if not compared:
        return Outcome(None, "no targets were seen apart from the loss")
    return Outcome(True, f"equal in {compared} comparisons")


def _distance(old: Update, new: Update) -> str:
    far = aims.apart(old, new)
    return "" if far is None else f", relative distance {far:.2g}, limit {aims.LIMIT:.2g}"


def target_values(pair: Pair) -> Outcome:
    """Targets that the program computes itself: where nothing but their rounding differs, they are the same work done otherwise."""
    compared = 0
    for relation, (old, new) in zip(pair.relations, pair.matched, strict=True):
        if relation not in SAME_WORK or not old.targets or not new.targets:
            continue
        compared += 1
        if aims.relation(old, new) == "rounding":
            return Outcome(False, f"update {old.n}: targets agree but for rounding{_distance(old, new)}")
    return Outcome(True, "no target differs by rounding") if compared else Outcome(None, "no targets were seen apart from the loss")


def _drawn_again(pair: Pair) -> tuple[int, int, int, int] | None:
    """Distinct targets of all, on both sides, where hardly one comes twice in the baseline (drawn noise) and many do in the candidate."""
    seen = []
    for stream in (pair.baseline, pair.candidate):
        updates = stream.updates[: pair.length]
        if any(update.target_rows is None for update in updates):
            return None
        rows = [row for update in updates for row in update.target_rows or ()]
        seen += [len(set(rows)), len(rows)]
    old, of_old, new, of_new = seen
    anew = 0 < of_old * (1 - _DRAWN_ALIKE) <= old
    by_chance = max(of_old - old, _DRAWN_ALIKE * of_new) + _DEVIATIONS * math.sqrt(of_new)
    return (old, of_old, new, of_new) if anew and of_new - new > by_chance else None


def _rows_moved(pair: Pair) -> bool:
    """Whether batches hold the same rows, in another order each with its own target, as a collate function that sorts them makes it."""
    moved = [two for relation, two in zip(pair.relations, pair.matched, strict=True) if relation == "order"]
    return (
        bool(moved)
        and SAME_WORK.issuperset({*pair.relations} - {"order"})
        and all(old.pairs is not None and old.pairs == new.pairs for old, new in moved)
    )


def _loader_leaves(pair: Pair) -> Iterable[tuple[int, tuple[Any, Any]]]:
    """Integer tensors of loader batches that are alike in type and shape, while the same samples come in the same order."""
    if pair.rebatched or _rows_moved(pair):
        return
    if not pair.same_keys and any(relation not in SAME_WORK for relation in pair.relations):
        return
    old = [batch for update in pair.baseline.updates[: pair.length] for batch in update.batches]
    new = [batch for update in pair.candidate.updates[: pair.length] for batch in update.batches]
    if len(old) != len(new) or [loader for loader, _ in old] != [loader for loader, _ in new]:
        return  # other batches: the samples of an update come in fewer or more of them
    for number, ((_, left), (_, right)) in enumerate(zip(old, new, strict=False), start=1):
        if [leaf[0] for leaf in left] == [leaf[0] for leaf in right]:
            pairs = zip(left, right, strict=True)
            yield from ((number, (a, b)) for a, b in pairs if a[1] and b[1] and a[0].startswith(("int", "uint", "bool")))
