"""Hard signals: one function each, compared exactly.

Which signals separate honest speed-ups from broken ones, and why the loss alone does not, was measured on 52 broken and 23 honest ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from trainflash.fidelity.pairing import Pair, epoch_starts
from trainflash.fidelity.record import Stream, Update

_SETTING_ROUNDING = 1e-6  # a learning rate kept in a float32 tensor
_BOUND_WIDTH = 1e-4  # torch divides by the norm plus 1e-6, so clipped norms are equal but for that
_BOUND_SLACK = 5e-3  # the same bound in bfloat16
_BOUND_LEAST, _BOUND_SHARE = 3, 0.02  # updates on the bound before it is one: norms that nobody bounds are never equal so often
_CHANGED_VALUES = 0.02  # share of values that one update changes: tiny gradients may round to nothing


class Outcome(NamedTuple):
    """`ok` None: the signal was not measured or cannot be compared; `evidence` says why, or where the first difference is."""

    ok: bool | None
    evidence: str


def updates(pair: Pair) -> Outcome:
    old, new = len(pair.baseline.updates), len(pair.candidate.updates)
    if pair.rebatched:
        return _rebatched_updates(pair)
    if (pair.candidate_whole and new < old) or (pair.baseline_whole and new > old):
        return Outcome(False, f"{old} updates → {new}")
    if pair.baseline_whole and pair.candidate_whole:
        return Outcome(True, f"{old} updates, to the program's own end")
    return Outcome(True, f"{pair.length} updates compared; the program was stopped there, its own end was not seen")


def _rebatched_updates(pair: Pair) -> Outcome:
    """Another batch size alone makes as many updates as its samples fill; what matters is that no sample less is trained on."""
    old, new = pair.samples
    counts = f"{len(pair.baseline.updates)} updates → {len(pair.candidate.updates)}"
    remainder = max(update.samples for update in (*pair.baseline.updates, *pair.candidate.updates))  # of a dropped last batch
    epochs = max(1, len(epoch_starts(pair.baseline, len(pair.baseline.updates))))
    fewer = pair.candidate_whole and new < old - epochs * remainder * pair.baseline_whole
    more = pair.baseline_whole and pair.candidate_whole and new > old + epochs * remainder
    if fewer or more:
        return Outcome(False, f"{counts}, {old} samples → {new}")
    return Outcome(True, f"{counts} of other size, {old} samples → {new}")


def optimizer(pair: Pair) -> Outcome:
    found = pair.first(lambda update: (update.optimizer, update.optimizer_class))
    if found:
        return Outcome(False, f"update {found[0]}: {found[1][1]} → {found[2][1]}")
    return _settings(pair, lambda key: key not in {"lr", "weight_decay"})


def schedule(pair: Pair) -> Outcome:
    return _settings(pair, lambda key: key in {"lr", "weight_decay"})


def _settings(pair: Pair, wanted: Callable[[str], bool]) -> Outcome:
    for old, new in pair.aligned:
        if len(old.settings) != len(new.settings):
            return Outcome(False, f"update {old.n}: {len(old.settings)} parameter groups → {len(new.settings)}")
        for index, (left, right) in enumerate(zip(old.settings, new.settings, strict=True)):
            for key in sorted(key for key in {*left, *right} if wanted(key)):
                if not _near(left.get(key), right.get(key)):
                    return Outcome(False, f"update {old.n}, group {index}: {key} {left.get(key)} → {right.get(key)}")
    measured = any(update.settings for update in pair.baseline.updates)
    return Outcome(True, f"equal in {pair.length} updates") if measured else Outcome(None, "no parameter groups were seen")


def _near(old: Any, new: Any) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_near, old, new))
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return old == new or math.isclose(old, new, rel_tol=_SETTING_ROUNDING)
    return bool(old == new)


def batch(pair: Pair) -> Outcome:
    for name, what in (("samples", lambda update: update.samples), ("backward calls", lambda update: len(update.losses))):
        for old, new in pair.matched:
            if what(old) != what(new):
                return Outcome(False, f"update {old.n}: {what(old)} {name} → {what(new)}")
    return Outcome(True, f"equal numbers of samples and backward calls in {pair.length} updates")


def shapes(pair: Pair) -> Outcome:
    found = pair.first(lambda update: sorted(shape[shape.index("[") :] for shape in update.shapes))
    if found:
        return Outcome(False, f"update {found[0]}: {_some(found[1])} → {_some(found[2])}")
    if not _has_inputs(pair):
        return _no_inputs()
    return Outcome(True, f"equal in {pair.length} updates")


def types(pair: Pair) -> Outcome:
    kinds = (
        ("inputs", lambda update: sorted({shape.split("[")[0] for shape in update.shapes})),
        ("autocast", lambda update: list(update.autocast)),
        ("loss", lambda update: list(update.loss_types)),
    )
    for name, what in kinds:
        found = pair.first(what)
        if found:
            return Outcome(False, f"update {found[0]}: {name} {_some(found[1])} → {_some(found[2])}")
    for old, new in pair.weights:
        if old.get("types") != new.get("types"):
            return Outcome(False, f"update {old['n']}: weights {_some(old.get('types'))} → {_some(new.get('types'))}")
    return Outcome(True, f"equal in {pair.length} updates")


def samples(pair: Pair) -> Outcome:
    if not _has_inputs(pair):
        return _no_inputs()
    other = [index for index, relation in enumerate(pair.relations) if relation == "other"]
    if not other or (pair.rebatched and _same_sequence(pair)):
        return Outcome(True, f"the same samples in each of {pair.length} updates")
    first = pair.baseline.updates[other[0]]
    epochs = _whole_epochs(pair)
    distinct = _distinct(pair)
    if epochs and all(old == new for old, new in epochs) and not distinct[2]:
        return Outcome(True, f"the same samples in each of {len(epochs)} whole epochs, in another order from update {first.n} on")
    counts = f"; distinct samples {distinct[0]} → {distinct[1]}" if distinct[0] and distinct[0] != distinct[1] else ""
    why = "" if epochs else "; no whole epoch was seen that could show the same samples in another order"
    return Outcome(False, f"update {first.n}: other samples ({len(other)} of {pair.length} updates){counts}{why}")


def _whole_epochs(pair: Pair) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Sum of the sample hashes, and samples, of each epoch that was seen from its begin to its end, on both sides."""
    return list(zip(_epochs(pair.baseline, pair, pair.baseline_whole), _epochs(pair.candidate, pair, pair.candidate_whole), strict=False))


def _epochs(stream: Stream, pair: Pair, whole: bool) -> list[tuple[int, int]]:
    length = len(stream.updates) if pair.rebatched else pair.length
    starts = list(epoch_starts(stream, length))
    if whole and length == len(stream.updates):
        starts.append(length)
    return [_sum(stream, begin, end) for begin, end in pairwise(starts)]


def _sum(stream: Stream, begin: int, end: int) -> tuple[int, int]:
    inside = stream.updates[begin:end]
    return sum(int(update.multiset, 16) for update in inside) % (1 << 64), sum(update.samples for update in inside)


def _same_sequence(pair: Pair) -> bool:
    """Whether both sides show the same samples in the same order, however they are cut into batches."""
    old, new = ([row for update in stream.updates for row in update.rows or ()] for stream in (pair.baseline, pair.candidate))
    return bool(old) and bool(new) and all(left == right for left, right in zip(old, new, strict=False))


def _distinct(pair: Pair) -> tuple[int, int, int]:
    """Distinct samples of the baseline, of the candidate, and those of the candidate that the baseline's whole epochs never showed."""
    old = {row for update in pair.baseline.updates[: pair.length] for row in update.rows or ()}
    new = {row for update in pair.candidate.updates[: pair.length] for row in update.rows or ()}
    return len(old), len(new), len(new - old)


def input_values(pair: Pair) -> Outcome:
    found = next((index for index, relation in enumerate(pair.relations) if relation == "rounding"), None)
    if found is not None:
        return Outcome(False, f"update {pair.baseline.updates[found].n}: inputs agree but for rounding")
    return Outcome(True, "no input differs by rounding") if _has_inputs(pair) else _no_inputs()


def order(pair: Pair) -> Outcome:
    if not _has_inputs(pair):
        return _no_inputs()
    found = next((index for index, relation in enumerate(pair.relations) if relation in {"order", "other"}), None)
    if found is None or (pair.rebatched and _same_sequence(pair)):
        return Outcome(True, f"the same order in {pair.length} updates")
    inside = "within the batch" if pair.relations[found] == "order" else "over the epoch"
    return Outcome(False, f"update {pair.baseline.updates[found].n}: samples come in another order {inside}")


def targets(pair: Pair) -> Outcome:
    compared = 0
    for relation, (old, new) in zip(pair.relations, pair.matched, strict=True):
        if relation in {"same", "rounding"} and old.targets and new.targets:
            compared += 1
            if old.targets != new.targets:
                return Outcome(False, f"update {old.n}: the same inputs meet other targets")
    for number, (old_leaf, new_leaf) in _loader_leaves(pair):
        compared += 1
        if old_leaf != new_leaf:
            return Outcome(False, f"batch {number} of the loader: the same inputs come with other {old_leaf[0]} values")
    if not compared:
        return Outcome(None, "no targets were seen apart from the loss")
    return Outcome(True, f"equal in {compared} comparisons")


def _loader_leaves(pair: Pair) -> Iterable[tuple[int, tuple[Any, Any]]]:
    """Integer tensors of loader batches that are alike in type and shape, while all model inputs are equal and in order."""
    if any(relation not in {"same", "rounding"} for relation in pair.relations):
        return
    old = [batch for update in pair.baseline.updates[: pair.length] for batch in update.batches]
    new = [batch for update in pair.candidate.updates[: pair.length] for batch in update.batches]
    if [loader for loader, _ in old[: len(new)]] != [loader for loader, _ in new[: len(old)]]:
        return
    for number, ((_, left), (_, right)) in enumerate(zip(old, new, strict=False), start=1):
        if [leaf[0] for leaf in left] == [leaf[0] for leaf in right]:
            pairs = zip(left, right, strict=True)
            yield from ((number, (a, b)) for a, b in pairs if a[1] and b[1] and a[0].startswith(("int", "uint", "bool")))


def mode(pair: Pair) -> Outcome:
    found = pair.first(lambda update: sorted({tuple(mode[1:]) for mode in update.modes}))
    if not found:
        return Outcome(True, f"equal in {pair.length} updates") if _has_inputs(pair) else _no_inputs()
    old, new = (_mode(found[side]) for side in (1, 2))
    return Outcome(False, f"update {found[0]}: {old} → {new}")


def _mode(modes: list[tuple[Any, ...]]) -> str:
    return " + ".join(
        f"{'train' if training else 'eval'} ({dropouts} dropouts of {chance:g} in all, {norms} normalizations in train mode)"
        for training, dropouts, chance, norms in modes
    )


def coverage(pair: Pair) -> Outcome:
    compared = 0
    for old, new in pair.weights:
        if "updated" not in old or "updated" not in new:
            continue
        compared += 1
        lost = sorted(set(new["untouched"]) ^ set(old["untouched"]))
        if old["updated"] != new["updated"] or lost:
            names = f" ({', '.join(lost[:3])}{', …' if len(lost) > 3 else ''})" if lost else ""
            return Outcome(False, f"update {old['n']}: {old['updated']} parameters updated → {new['updated']}{names}")
        before, after = old["changed_values"], new["changed_values"]
        if before is not None and after is not None and abs(before - after) > _CHANGED_VALUES * before:
            return Outcome(False, f"update {old['n']}: {before} values updated → {after}")
    found = pair.first(lambda update: update.grad_elements)
    if found and not pair.bitwise:
        return Outcome(False, f"update {found[0]}: gradients of {found[1]} values → {found[2]}")
    if not compared:
        return Outcome(None, "no update was looked at closely enough")
    return Outcome(True, f"the same parameters updated at {compared} updates looked at")


def evaluation(pair: Pair) -> Outcome:
    old, new = _evaluations(pair)
    if not old and not new:
        return Outcome(None, "no evaluation was seen")
    known = {(line["multiset"], line["samples"]) for line in old.values()}
    for n, line in sorted(new.items()):
        before = old.get(n)
        if before is None and old and (line["multiset"], line["samples"]) not in known:
            return Outcome(False, f"after update {n}: {line['samples']} samples that the baseline never evaluates at once")
        if before is None:
            continue
        if before["samples"] != line["samples"] or before["multiset"] != line["multiset"]:
            what = "other samples" if before["samples"] == line["samples"] else f"{before['samples']} samples → {line['samples']}"
            return Outcome(False, f"after update {n}: {what}")
        modes = [sorted({tuple(mode[1:]) for mode in each["modes"]}) for each in (before, line)]
        if modes[0] != modes[1]:
            return Outcome(False, f"after update {n}: {_mode(modes[0])} → {_mode(modes[1])}")
    shared = sorted(set(old) & set(new))
    if not shared:
        return Outcome(None, "no evaluation was seen on both sides after the same update")
    counts = {(old[n]["forwards"], new[n]["forwards"]) for n in shared if old[n]["forwards"] != new[n]["forwards"]}
    batches = "".join(f", in {a} forwards → {b}" for a, b in sorted(counts)[:1])
    return Outcome(True, f"the same samples in {len(shared)} evaluations{batches}")


def evaluation_cadence(pair: Pair) -> Outcome:
    old, new = _evaluations(pair)
    return cadence(sorted(old), sorted(new), pair)


def _evaluations(pair: Pair) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]:
    sides: tuple[Literal["baseline", "candidate"], ...] = ("baseline", "candidate")
    old, new = (
        {pair.place(side, line["n"]): line for line in getattr(pair, side).evaluations if line["forwards"] and line["n"] <= pair.closed_on(side)}
        for side in sides
    )
    return old, new


def cadence(old: list[int], new: list[int], pair: Pair) -> Outcome:
    """Whether something was done at the same places: after so many updates, or so many samples where the batch has changed."""
    unit = "samples" if pair.rebatched else "updates"
    if not old and not new:
        return Outcome(None, "none was seen")
    if old == new:
        return Outcome(True, f"{len(old)} times, after the same {unit}")
    first = next((min(a, b) for a, b in zip(old, new, strict=False) if a != b), (old + new)[min(len(old), len(new))])
    return Outcome(False, f"{len(old)} times → {len(new)} (first difference after {'update' if unit == 'updates' else 'sample'} {first})")


def log_cadence(pair: Pair) -> Outcome:
    old, new = ([update.n for update in stream.updates[: pair.length] for _ in range(update.logs)] for stream in (pair.baseline, pair.candidate))
    if old == new or not pair.rebatched:
        return cadence(old, new, pair)
    sides: tuple[Literal["baseline", "candidate"], ...] = ("baseline", "candidate")
    old, new = ([pair.place(side, update.n) for update in getattr(pair, side).updates for _ in range(update.logs)] for side in sides)
    return cadence(old, new, pair)


def clipping(pair: Pair) -> Outcome:
    """A bound on the gradient's norm, seen by many updates that lie exactly on it: it holds in any order of the samples."""
    compared = 0
    for optimizer in sorted({update.optimizer for update in pair.baseline.updates}):
        old, new = (_norms(stream.updates, optimizer) for stream in (pair.baseline, pair.candidate))
        bound, other = _bound(old), _bound(new)
        if bound is not None:
            compared += 1
            above = next((update for update in new if update[1] > bound * (1 + _BOUND_SLACK)), None)
            if above:
                evidence = f"update {above[0]}: the gradient's norm is {above[1]:.6g}; in the baseline none exceeds {bound:.6g}"
                return Outcome(False, evidence)
        elif other is not None and old and max(norm for _, norm in old) > other * (1 + _BOUND_SLACK):
            evidence = f"no gradient's norm exceeds {other:.6g}; in the baseline it goes up to {max(norm for _, norm in old):.6g}"
            return Outcome(False, evidence)
    return Outcome(True, "no gradient exceeds the baseline's bound") if compared else Outcome(None, "the baseline bounds no gradient's norm")


def _norms(updates: Iterable[Update], optimizer: int) -> list[tuple[int, float]]:
    return [
        (update.n, update.grad_norm)
        for update in updates
        if update.optimizer == optimizer and update.grad_norm is not None and math.isfinite(update.grad_norm)
    ]


def _bound(norms: list[tuple[int, float]]) -> float | None:
    """The largest norm, if so many updates have it that it must be imposed."""
    largest = max((norm for _, norm in norms), default=0.0)
    on_it = sum(norm >= largest * (1 - _BOUND_WIDTH) for _, norm in norms)
    return largest if largest and on_it >= max(_BOUND_LEAST, _BOUND_SHARE * len(norms)) else None


def random_streams(pair: Pair) -> Outcome:
    compared = 0
    for old, new in pair.weights:
        left, right = old.get("random") or {}, new.get("random") or {}
        different = sorted(name for name in left.keys() & right.keys() if left[name] != right[name])
        if different:
            return Outcome(None, f"{', '.join(different)} differ by update {old['n']}: draws were added, lost or reordered")
        compared += bool(left and right)
    return Outcome(True, f"equal at {compared} updates") if compared else Outcome(None, "not recorded")


def _has_inputs(pair: Pair) -> bool:
    return any(update.samples for update, _ in pair.matched)


def _no_inputs() -> Outcome:
    return Outcome(None, "no model inputs were seen (the loss does not come from an nn.Module)")


def _some(names: Any) -> str:
    listed = [str(name) for name in names or ()]
    return ", ".join(listed[:4]) + (", …" if len(listed) > 4 else "") if any(listed) else "none"
