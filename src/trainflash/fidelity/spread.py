"""Where single updates cannot be compared, for another order or for want of a seed: is the candidate one of the baseline's kind?

Several baseline runs that differ in nothing but chance (their order, their seed) show how far figures of a whole run scatter: mean losses
and gradient norms of each quarter, the largest norms, the sizes of steps, how far weights lie apart. A candidate whose figure lies
outside the prediction interval of theirs has changed in more than chance. Where no such runs can be had, the scatter within the
baseline's own updates stands in, which sees only coarse damage.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainflash.fidelity.drift import EARLY_UPDATES, weights_distance
from trainflash.fidelity.pairing import Pair
from trainflash.fidelity.record import Stream
from trainflash.schema import Check
from trainflash.stats import t_quantile

LEAST_RUNS = 4  # of the baseline, itself included: three degrees of freedom
_CONFIDENCE = 0.9995  # one-sided, for each figure: some 20 figures are looked at
_LEAST_QUARTER = 4  # updates in a part whose mean is taken
_WITHIN = 5.0  # standard errors, where only the updates of one run show the scatter
_LEAST_GRADIENTS = 0.02  # log₁₀ of a norm: 5 % is never held against a candidate
# Batches of samples of like length weigh each sample otherwise than batches of any: in a tagger that trains the same samples in the same
# epochs the loss came out lower by 2.5 %, gradient norms larger by 19 %, single moves by 52 %.
_COMPOSED_LOSS, _COMPOSED_GRADIENTS, _COMPOSED_STEPS = 0.05, 0.1, 0.2  # relative; log₁₀ of a norm; log₁₀ of a move
_APART = 2.0  # times as far from the nearest baseline run as any of them lies from its own nearest


@dataclass(frozen=True)
class Group:
    """Figures of one kind; the least difference that counts is the same for all of them."""

    name: str
    change: str
    least: float
    figures: Callable[[Stream, int], dict[str, float]]


def checks(pair: Pair, controls: Sequence[Stream], tolerance: float, *, composed: bool = False) -> Iterator[tuple[str, Check]]:
    """`(what changed if it fails, check)` for each group of figures; `controls` are further runs of the baseline.

    `composed`: the owner agrees that batches are composed otherwise, of samples of like length; then smaller differences are no damage.
    """
    others = [stream for stream in controls if len(stream.updates) >= 0.9 * pair.length and _differs(stream, pair.baseline)]
    length = min(pair.length, *(len(stream.updates) for stream in others)) if others else pair.length
    groups = (
        Group("losses in distribution", "loss", _least_loss(pair, tolerance, composed), _losses),
        Group("gradient norms in distribution", "gradients", _COMPOSED_GRADIENTS if composed else _LEAST_GRADIENTS, _gradients),
        Group("step sizes in distribution", "weights", _COMPOSED_STEPS if composed else _LEAST_GRADIENTS, _steps),
    )
    runs = [pair.baseline, *others]
    for group in groups:
        yield group.change, _against(group, runs, pair.candidate, length) if len(runs) >= LEAST_RUNS else _alone(group, pair)
    yield "weights", _apart(runs, pair.candidate)


def _least_loss(pair: Pair, tolerance: float, composed: bool) -> float:
    losses = _values(pair.baseline, pair.length, "loss")
    return max(tolerance, _COMPOSED_LOSS * abs(statistics.fmean(losses))) if composed and losses else tolerance


def _differs(stream: Stream, other: Stream) -> bool:
    return any(a.losses != b.losses for a, b in zip(stream.updates, other.updates, strict=False))


def _against(group: Group, runs: Sequence[Stream], candidate: Stream, length: int) -> Check:
    """Each figure of the candidate against the prediction interval of the baseline runs."""
    known = [group.figures(stream, length) for stream in runs]
    new = group.figures(candidate, length)
    names = [name for name in known[0] if all(name in each for each in known)]
    if not names:
        return Check(group.name, None, "not recorded")
    lost = [name for name in names if name not in new]
    if lost:
        return Check(group.name, False, f"{lost[0]} is not there any more")
    spreads = {name: statistics.stdev(each[name] for each in known) for name in names}
    pooled = math.sqrt(statistics.fmean(spread**2 for spread in spreads.values()))
    worst = ("", -math.inf, "")
    for name in names:
        center = statistics.fmean(each[name] for each in known)
        spread = math.sqrt((spreads[name] ** 2 + pooled**2) / 2)
        limit = max(group.least, t_quantile(_CONFIDENCE, 2 * (len(known) - 1)) * spread * math.sqrt(1 + 1 / len(known)))
        share = abs(new[name] - center) / limit if math.isfinite(new[name]) else math.inf
        if share > worst[1]:
            worst = (name, share, f"{name} {new[name]:.4g}, baseline {center:.4g} ± {limit:.2g}")
    return Check(group.name, worst[1] <= 1, f"{worst[2]}, the farthest of {len(names)} figures beside {len(known)} baseline runs")


def _alone(group: Group, pair: Pair) -> Check:
    """The same figures beside the scatter of the baseline's own updates; coarse, and said to be."""
    old, new = group.figures(pair.baseline, pair.length), group.figures(pair.candidate, pair.length)
    scatter = _scatter(group, pair.baseline, pair.length)
    names = [name for name in old if name in new and name.startswith("mean")]
    if scatter is None or not names:
        return Check(group.name, None, "could not be judged: no second order of the baseline's samples could be made")
    limit = max(group.least, _WITHIN * scatter)
    name = max(names, key=lambda each: abs(new[each] - old[each]) if math.isfinite(new[each]) else math.inf)
    ok = abs(new[name] - old[name]) <= limit
    evidence = f"{name} {old[name]:.4g} → {new[name]:.4g}, limit {limit:.2g} from the scatter of one run: finer differences were not judged"
    return Check(group.name, ok, evidence)


def _scatter(group: Group, stream: Stream, length: int) -> float | None:
    """Standard error of the difference of two means of a quarter, from neighbouring updates."""
    values = _values(stream, length, "loss" if group.change == "loss" else "gradient")
    if group.change == "weights" or len(values) < 2 * _LEAST_QUARTER:
        return None
    noise = statistics.fmean((b - a) ** 2 for a, b in pairwise(values)) / 2
    return math.sqrt(2 * noise / max(1, len(values) // _parts(len(values))))


def _parts(length: int) -> int:
    return max(1, min(4, length // _LEAST_QUARTER))


def _values(stream: Stream, length: int, kind: str) -> list[float]:
    updates = stream.updates[:length]
    if kind == "loss":
        return [update.loss for update in updates if update.loss is not None]
    return [math.log10(update.grad_norm) for update in updates if update.grad_norm and math.isfinite(update.grad_norm)]


def _means(values: Sequence[float], what: str) -> dict[str, float]:
    parts = _parts(len(values))
    edges = [round(index * len(values) / parts) for index in range(parts + 1)]
    return {
        f"mean {what} of part {index + 1} of {parts}": math.fsum(values[edges[index] : edges[index + 1]])
        / (edges[index + 1] - edges[index])
        for index in range(parts)
        if edges[index + 1] > edges[index]
    }


def _losses(stream: Stream, length: int) -> dict[str, float]:
    return _means(_values(stream, length, "loss"), "loss")


def _gradients(stream: Stream, length: int) -> dict[str, float]:
    values = _values(stream, length, "gradient")
    if not values:
        return {}
    ranked = sorted(values)
    high = {"log₁₀ of the norm exceeded by a tenth": ranked[min(len(ranked) - 1, round(0.9 * len(ranked)))]}
    return _means(values, "log₁₀ norm") | high


def _steps(stream: Stream, length: int) -> dict[str, float]:
    """log₁₀ of how far the weights moved between two records of one optimizer."""
    found: dict[str, float] = {}
    before: dict[int, dict] = {}
    for line in stream.weights:
        last = before.get(line["optimizer"])
        if last is not None and line["n"] <= length and line.get("sketch") and last.get("sketch"):
            moved = math.dist(line["sketch"], last["sketch"])
            if moved > 0 and math.isfinite(moved):
                found[f"log₁₀ of the move from update {last['n']} to {line['n']}"] = math.log10(moved)
        before[line["optimizer"]] = line
    return found


def _apart(runs: Sequence[Stream], candidate: Stream) -> Check:
    """Distance of the candidate's weights from the nearest baseline run, beside those among the baseline runs."""
    name = "weights in distribution"
    if len(runs) < LEAST_RUNS:
        return Check(name, None, "could not be judged: too few runs of the baseline to compare with")
    known = [{(line["n"], line["optimizer"]): line for line in stream.weights} for stream in runs]
    worst, where = 0.0, 0
    compared = 0
    for line in candidate.weights:
        key = (line["n"], line["optimizer"])
        lines = [each[key] for each in known if key in each]
        if len(lines) < LEAST_RUNS or line["n"] < EARLY_UPDATES:
            continue
        theirs = weights_distance_to_nearest(line, lines)
        own = [weights_distance_to_nearest(each, [other for other in lines if other is not each]) for each in lines]
        if theirs is None or any(each is None for each in own):
            continue
        compared += 1
        widest = max(each for each in own if each is not None)
        share = theirs / widest if widest else (math.inf if theirs else 0.0)
        if share > worst:
            worst, where = share, line["n"]
    if not compared:
        return Check(name, None, "no weights were recorded on all sides after the same update")
    evidence = f"after update {where} {worst:.2g} times as far from the nearest of {len(runs)} baseline runs as they are from each other"
    return Check(name, worst <= _APART, evidence)


def weights_distance_to_nearest(line: dict, others: Sequence[dict]) -> float | None:
    """The least relative distance of recorded weights from others."""
    distances = [distance for other in others if (distance := weights_distance(other, line)) is not None]
    return min(distances, default=None)
