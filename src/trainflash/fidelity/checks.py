"""Hard signals: one function each, compared exactly.

Which signals separate honest speed-ups from broken ones, and why the loss alone does not, was measured on 52 broken and 23 honest ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any

from trainflash.fidelity.drift import relative
from trainflash.fidelity.outcome import Outcome, has_inputs, modes_in_words, no_inputs, some
from trainflash.fidelity.pairing import SAME_WORK, Pair, epoch_starts
from trainflash.fidelity.record import Update

_SETTING_ROUNDING = 1e-6  # a learning rate kept in a float32 tensor
_ALL_COARSE, _MORE_COARSE = 0.99, 0.1  # shares of values that bfloat16 holds exactly
_RATE_ROUNDING = 0.02  # a schedule counted in updates meets that in samples between two of its steps
_RATES_SCALED = 0.8  # of all updates: the rest is warm-up
_BOUND_WIDTH = 1e-4  # torch divides by the norm plus 1e-6, so clipped norms are equal but for that
_BOUND_SLACK = 5e-3  # the same bound in bfloat16
_BOUND_LEAST, _BOUND_SHARE = 3, 0.02  # updates on the bound before it is one: norms that nobody bounds are never equal so often
_CHANGED_VALUES = 0.02  # share of values that one update changes: tiny gradients may round to nothing
_CHANGED_ELSEWHERE = 0.2  # the same once both have gone ways of their own: other units answer with 0; a part that is left out is more
_AVERAGES = 1e-5  # relative L2 of averages of the same weights: another order of the same sums moves them by 1e-7
_OWN_WAY = 1e-3  # relative, of the loss of an update, from which on they have; rounding alone takes no loss so far at once


def updates(pair: Pair) -> Outcome:
    old, new = len(pair.baseline.updates), len(pair.candidate.updates)
    if pair.rebatched:
        return _rebatched_updates(pair)
    other = next((both for both in pair.matched if both[0].optimizer != both[1].optimizer), None)
    if other is not None:
        return Outcome(False, f"update {other[0].n} is one of optimizer {other[0].optimizer + 1} → of optimizer {other[1].optimizer + 1}")
    if (pair.candidate_whole and new < old) or (pair.baseline_whole and new > old):
        equal = "; all before are equal: does its length depend on time? then give it a number of steps"
        timed = new > old and pair.bitwise and pair.baseline_whole and pair.candidate_whole
        return Outcome(False, f"{old} updates → {new}{equal if timed else ''}", (old, new))
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
    if found and not pair.proven:
        return Outcome(False, f"update {found[0]}: {found[1][1]} → {found[2][1]}")
    settings = _settings(pair, lambda key: key not in {"lr", "weight_decay"})
    return Outcome(True, f"{found[1][1]} → {found[2][1]}, bitwise the same in {pair.length} updates") if found and settings.ok else settings


def schedule(pair: Pair) -> Outcome:
    if pair.rebatched and (scale := _scaled_rate(pair)) is not None:
        return Outcome(True, f"scaled with the batch (learning rate × {scale:g})")
    return _settings(pair, lambda key: key in {"lr", "weight_decay"})


def _scaled_rate(pair: Pair) -> float | None:
    """The factor on all learning rates, where it is the ratio of the batch sizes or its root; a warm-up counted in updates may differ."""
    sizes = [(old.samples, new.samples) for old, new in pair.matched if old.samples and new.samples]
    ratio = statistics.median(new / old for old, new in sizes)
    settings = [(old.settings, new.settings) for old, new in pair.aligned]
    if any(len(old) != len(new) or not old for old, new in settings):
        return None
    groups = [both for old, new in settings for both in zip(old, new, strict=True)]
    if any(not _near(old.get("weight_decay"), new.get("weight_decay")) for old, new in groups):
        return None
    rates = [new["lr"] / old["lr"] for old, new in groups if old.get("lr") and "lr" in new]
    for factor in (ratio, math.sqrt(ratio)):
        near = sum(math.isclose(rate, factor, rel_tol=_RATE_ROUNDING) for rate in rates)
        if rates and near >= _RATES_SCALED * len(rates):
            return round(factor, 4)
    return None


def _settings(pair: Pair, wanted: Callable[[str], bool]) -> Outcome:
    for old, new in pair.aligned:
        ours, theirs = old.settings, new.settings
        if ours == theirs or _by_settings(ours) == _by_settings(theirs):  # the same values under the same settings may be grouped otherwise
            continue
        if len(ours) != len(theirs):
            return Outcome(False, f"update {old.n}: {len(old.settings)} parameter groups → {len(new.settings)}")
        for index, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            keys = left.keys() & right.keys() if pair.proven else left.keys() | right.keys()  # what only one side's class knows
            for key in sorted(filter(wanted, keys)):
                if not _near(left.get(key), right.get(key)):
                    return Outcome(False, f"update {old.n}, group {index}: {key} {left.get(key)} → {right.get(key)}")
    measured = any(update.settings for update in pair.baseline.updates)
    return Outcome(True, f"equal in {pair.length} updates") if measured else Outcome(None, "no parameter groups were seen")


def _by_settings(groups: tuple[dict[str, Any], ...]) -> dict[str, int]:
    """Values that are trained under each set of settings."""
    found: dict[str, int] = {}
    for group in groups:
        name = repr(sorted((key, value) for key, value in group.items() if key != "values"))
        found[name] = found.get(name, 0) + group.get("values", 0)
    return found


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


def types(pair: Pair) -> Outcome:
    kinds = (
        ("inputs", lambda update: sorted({shape.split("[")[0] for shape in update.shapes})),
        ("autocast", lambda update: list(update.autocast)),
        ("loss", lambda update: list(update.loss_types)),
    )
    encoded = "encoded" in pair.relations
    for name, what in kinds:
        found = pair.first(what)
        if found and not (name == "inputs" and encoded):
            return Outcome(False, f"update {found[0]}: {name} {some(found[1])} → {some(found[2])}")
    rounded = [next((each for each in stream.updates if each.coarse[1]), None) for stream in (pair.baseline, pair.candidate)]
    if rounded[0] is not None and rounded[1] is not None and not encoded:
        before, after = (each.coarse[0] / each.coarse[1] for each in rounded if each is not None)
        if after > _ALL_COARSE >= before + _MORE_COARSE:
            return Outcome(False, f"inputs say float32 and hold bfloat16: {before:.0%} of their values → {after:.0%}")
    for old, new in pair.weights:
        if old.get("types") != new.get("types"):
            return Outcome(False, f"update {old['n']}: weights {some(old.get('types'))} → {some(new.get('types'))}")
    return Outcome(True, f"equal in {pair.length} updates")


def mode(pair: Pair) -> Outcome:
    found = pair.first(lambda update: sorted({tuple(mode[1:]) for mode in update.modes}))
    if not found:
        return Outcome(True, f"equal in {pair.length} updates") if has_inputs(pair) else no_inputs()
    old, new = (modes_in_words(found[side]) for side in (1, 2))
    return Outcome(False, f"update {found[0]}: {old} → {new}")


def coverage(pair: Pair) -> Outcome:
    compared = 0
    otherwise: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = {}  # by optimizer: looks at updates with other samples
    apart_from = _own_way_from(pair)
    for old, new in pair.weights:
        if "updated" not in old or "updated" not in new:
            continue
        compared += 1
        if pair.relations[old["n"] - 1] not in SAME_WORK and old["parameters"] == new["parameters"]:
            otherwise.setdefault(old["optimizer"], []).append((old, new))
            continue
        if old["updated"] != new["updated"] or set(new["untouched"]) != set(old["untouched"]):
            return _other_parameters(old, new, set(new["untouched"]) ^ set(old["untouched"]))
        before, after = old["changed_values"], new["changed_values"]
        limit = _CHANGED_VALUES if old["n"] < apart_from else _CHANGED_ELSEWHERE
        if before is not None and after is not None and abs(before - after) > limit * before:
            return Outcome(False, f"update {old['n']}: {before} values updated → {after}")
    for looks in otherwise.values():
        lost = _lost(looks)
        if lost:
            return _other_parameters(*looks[-1], lost)
    found = pair.first(lambda update: update.grad_elements)
    if found and not pair.bitwise:
        return Outcome(False, f"update {found[0]}: gradients of {found[1]} values → {found[2]}")
    if not compared:
        return Outcome(None, "no update was looked at closely enough")
    return Outcome(True, f"the same parameters updated at {compared} updates looked at")


def averages(pair: Pair) -> Outcome:
    """Averages that are kept beside the weights, wherever the weights themselves are the same: one that is made more seldom lags."""
    compared = 0
    for old, new in pair.weights:
        before, after = old.get("averages") or [], new.get("averages") or []
        if old["digest"] != new["digest"] or not before or len(before) != len(after):
            continue
        compared += 1
        far = max(min(relative(math.dist(sketch, other), norm) for _, other in after) for norm, sketch in before)
        if far > _AVERAGES:
            return Outcome(False, f"update {old['n']}: another average of the same weights is kept, relative distance {far:.2g}")
    return Outcome(True, f"the same at {compared} updates looked at") if compared else Outcome(None, "no average of the weights was seen")


def _own_way_from(pair: Pair) -> float:
    """The first update whose losses are further apart than rounding takes them at once; infinity where all agree."""
    known = ((old.n, old.loss, new.loss) for old, new in pair.matched if old.loss is not None and new.loss is not None)
    return next((n for n, ours, theirs in known if not math.isclose(ours, theirs, rel_tol=_OWN_WAY, abs_tol=_OWN_WAY)), math.inf)


def _lost(looks: list[tuple[dict[str, Any], dict[str, Any]]]) -> set[str]:
    """Parameters that one side always updates and the other never does.

    Other samples leave other gradients at exactly 0: what a normalization follows, such as the bias in front of a batch norm, is moved at
    one update and not at the next.
    """
    never = [set.intersection(*(set(look["untouched"]) for look in side)) for side in zip(*looks, strict=True)]
    ever = [set.union(*(set(look["untouched"]) for look in side)) for side in zip(*looks, strict=True)]
    return (never[1] - ever[0]) | (never[0] - ever[1])


def _other_parameters(old: dict[str, Any], new: dict[str, Any], names: set[str]) -> Outcome:
    some_of = sorted(names)
    told = f" ({', '.join(some_of[:3])}{', …' if len(some_of) > 3 else ''})" if some_of else ""
    return Outcome(False, f"update {old['n']}: {old['updated']} parameters updated → {new['updated']}{told}")


def cadence(old: list[int], new: list[int], pair: Pair) -> Outcome:
    """Whether something was done at the same places: after so many updates, or so many samples where the batch has changed."""
    unit = "samples" if pair.rebatched else "updates"
    if not old and not new:
        return Outcome(None, "none was seen")
    if old == new:
        return Outcome(True, f"{len(old)} times, after the same {unit}")
    first = next((min(a, b) for a, b in zip(old, new, strict=False) if a != b), (old + new)[min(len(old), len(new))])
    evidence = f"{len(old)} times → {len(new)} (first difference after {'update' if unit == 'updates' else 'sample'} {first})"
    return Outcome(False, evidence, (len(old), len(new)))


def log_cadence(pair: Pair) -> Outcome:
    old, new = (
        [update.n for update in stream.updates[: pair.length] for _ in range(update.logs)] for stream in (pair.baseline, pair.candidate)
    )
    if pair.rebatched:
        return Outcome(None, f"{len(old)} times → {len(new)}: what counts updates cannot be compared after the batch has changed")
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
    return (
        Outcome(True, "no gradient exceeds the baseline's bound") if compared else Outcome(None, "the baseline bounds no gradient's norm")
    )


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
