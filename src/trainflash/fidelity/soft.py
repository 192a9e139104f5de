"""What rounding and chance move: losses, gradients, steps, weights. How far may they be apart, and up to where can they be compared at all?

Where both sides were given the same work, update by update, each distance is held against the tolerance and the program's own noise. From
the first update on at which the work differs by the owner's leave, or where the program does not repeat itself, only runs as a whole
can be compared (`spread`). What nothing can judge is a check without an answer, never a silent pass.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from trainflash.fidelity import checks_of_data, courses, spread
from trainflash.fidelity.courses import Course
from trainflash.fidelity.drift import Drift, drift, onset, widest
from trainflash.fidelity.pairing import SAME_WORK, Pair
from trainflash.fidelity.record import Record, Stream
from trainflash.schema import Check

Judged = tuple[str, Check]  # what has changed if the check fails, and the check
_FIRST_LOSS = 5.0  # standard deviations of the loss between neighbouring updates, for the first loss on another batch size


@dataclass(frozen=True)
class Limits:
    """How far apart an honest candidate may be. Measured on 52 broken and 23 honest speed-ups of five programs."""

    least_updates: int = 5
    early_weights: float = 1e-3  # relative L2 in the first 20 updates: honest ≤ 1e-3, broken ≥ 1.7e-3
    early_gradients: float = 1e-2  # relative, of the norm, in the first 3 updates
    late_loss: float = 1e-5  # relative, at the first update that is not bitwise the same after others that are
    late_loss_coarse: float = 1e-3  # the same, under autocast
    early_steps: float = 5e-2  # relative, of what the second update changed; Adam turns rounding of tiny gradients into whole steps
    precision: float = (
        1e-4  # relative, of the first gradient: float32 done otherwise ≤ 4e-5, TF32 and float16 some 5e-4, bfloat16 some 4e-3
    )
    precision_nudges: float = 100.0  # times the nudge's first gradient; TF32 rounds 8,192 times as coarsely as float32
    first_buffers: float = 1e-3  # relative L2 after the first update: only that update's own rounding is in them
    buffers_most: float = 5e-2  # the same, however large the noise is: statistics that move once instead of eight times are 0.1 to 1 away
    vectors: float = 5e-2  # relative, of gradients and steps later on and under autocast: honest ≤ 1e-2 beyond the nudge, broken ≥ 0.1
    vectors_most: float = 0.5  # the same, however large the noise is: a gradient that counts twice is 0.3 to 1 away; inf: not compared
    evaluated_outputs: float = 1e-3  # relative, of sums over an evaluation of the same samples
    weights_floor: float = 1e-5  # relative L2 that later weights may always be apart
    nudges: float = 10.0  # honest candidates stay within this multiple of the nudge
    loss_nudges: float = 3.0  # the same for the loss, where the nudge itself exceeds the tolerance
    types: float = 10.0  # factor on all of these when the candidate computes in other data types, which is named anyway


@dataclass(frozen=True)
class Noise:
    """The baseline against itself: names of the hard signals that differ, and distances. None: not measured."""

    rerun_failed: frozenset[str] = frozenset()
    nudge_failed: frozenset[str] = frozenset()
    derived: frozenset[tuple[int, int]] = frozenset()  # inputs that the nudge of the weights moves; see `Pair.derived`
    saved_rerun: frozenset[str] = frozenset()  # plain values in checkpoints that differ between two runs of the baseline
    saved_nudge: frozenset[str] = frozenset()  # the same beside the nudged run
    distinct: tuple[tuple[int, int, int], ...] = ()  # by process: updates, and distinct samples of two runs of the baseline in so many
    by_time: tuple[int, int] | None = None  # updates of two runs of the baseline that were equal for as long as both went on
    rerun: Drift | None = None
    nudge: Drift | None = None
    nudges: tuple[Drift, ...] = ()  # in other ways
    courses: tuple[Mapping[str, Sequence[Course]], ...] = ()  # by process: how far vectors of each kind drift, in the rerun and the nudge

    def of(self, distance: str) -> float | None:
        """The largest of the distances called `distance` (a field of `Drift`)."""
        values = [getattr(each, distance) for each in (self.rerun, self.nudge, *self.nudges) if each is not None]
        return max((value for value in values if value is not None), default=None)

    def restless(self, tolerance: float, limits: Limits) -> bool:
        """Two runs of the baseline are farther apart than an honest candidate may be: it draws from a stream that nobody seeds."""
        if self.rerun is None:
            return False
        loss, weights = self.rerun.mean_loss or 0.0, self.rerun.early_weights or 0.0
        return loss >= tolerance and weights > limits.early_weights


@dataclass(frozen=True)
class Question:
    """What is asked of the soft signals. `controls` None: runs as a whole are not to be compared (yet)."""

    pairs: tuple[Pair, ...]
    far: Drift
    noise: Noise
    tolerance: float
    limits: Limits
    moved: tuple[str, ...]  # changes after which single updates cannot be compared
    wider: bool  # other data types explain larger distances
    bitwise: bool
    unsteady: bool  # the baseline does not repeat itself
    controls: Sequence[Record] | None
    metric: bool = False  # the project's own metric decides instead of the loss's tolerance


def checks(question: Question) -> Iterator[Judged]:
    """All soft checks, in the order in which they are shown."""
    broken = broken_loss(question.pairs)
    if broken:
        yield "loss", Check("loss", False, broken)
    if question.unsteady and question.controls is not None:
        yield from _as_a_whole(question)
    elif not question.moved:
        yield from _by_update(question, question.pairs, question.far, "" if not broken else "loss")
    else:
        yield from _until_it_differs(question, "" if not broken else "loss")
        if question.controls is not None and set(question.moved) <= {"order", "samples"}:
            yield from _as_a_whole(question)


def broken_loss(pairs: Sequence[Pair]) -> str:
    """The first update whose loss the baseline has and the candidate lacks, or has only as NaN or infinity."""
    for pair in pairs:
        for old, new in pair.matched:
            if old.loss is None or not math.isfinite(old.loss):
                continue
            if new.loss is None or not math.isfinite(new.loss):
                return f"update {new.n}: {old.loss:.6g} → {'no backward' if new.loss is None else new.loss}"
    return ""


def _by_update(question: Question, pairs: Sequence[Pair], far: Drift, done: str, until: str = "") -> Iterator[Judged]:
    """Distances of matched updates. `done` is left out; `until` says where the compared part ends, when it is not the end."""
    noise, limits, wider = question.noise, question.limits, question.limits.types if question.wider else 1.0
    if done != "loss":
        yield "loss", _loss(question, far, until)
    yield from _precision(question, pairs)
    yield from _late(question, far)
    yield from _vectors(question, pairs, until)
    late = limits.weights_floor if noise.nudge is not None and not question.wider and not until else None
    outputs = max(late, limits.evaluated_outputs) if late is not None else None
    if far.first_buffers is not None:
        yield "weights", _first_buffers(question, far.first_buffers, wider)
    distances = (
        (
            "gradients",
            "gradients",
            far.early_gradients,
            limits.early_gradients * wider,
            "early_gradients",
            "norms of the first 3 updates that differ",
        ),
        ("update norms", "weights", far.early_steps, limits.early_steps * wider, "early_steps", "what the second update changed"),
        ("weights", "weights", far.early_weights, limits.early_weights * wider, "early_weights", "the first 20 updates that differ"),
        ("averaged weights", "weights", far.evaluated_weights, late, "evaluated_weights", "the evaluated modules"),
        ("evaluation outputs", "evaluation", far.evaluated_outputs, outputs, "evaluated_outputs", "the evaluations"),
        ("final weights", "weights", far.late_weights, late, "late_weights", "the last update compared"),
    )
    for name, change, distance, limit, kind, where in distances:
        if kind == "evaluated_outputs" and (question.bitwise or distance is None):
            continue  # a hard signal has compared them, or there are none
        if distance is None:
            yield change, Check(name, None, "not recorded")
            continue
        own = noise.of(kind)
        allowed = max(limit, limits.nudges * own) if own is not None and limit is not None else limit
        ok = None if allowed is None else distance <= allowed
        shown = ", no limit known" if allowed is None else f", limit {allowed:.2g}"
        yield change, Check(name, True if distance == 0 else ok, f"relative distance {distance:.2g} in {where}{until}{shown}")


def _precision(question: Question, pairs: Sequence[Pair]) -> Iterator[Judged]:
    """Whether the first gradient, which comes from the same weights and samples, was computed more coarsely than rounding explains."""
    nudged = [course.far[0] for each in question.noise.courses for course in each.get("gradient", ()) if course.far and not course.begin]
    firsts = [own.far[0] for pair in pairs if (own := courses.course(pair, "gradient")) is not None and own.far and not own.begin]
    coarse = any(any(pair.baseline.updates[0].autocast) for pair in pairs)
    if question.wider or coarse or not firsts or question.noise.nudge is None:
        return
    limit = max(question.limits.precision, question.limits.precision_nudges * max(nudged, default=0.0))
    evidence = f"relative distance {max(firsts):.2g} of the first gradient, limit {limit:.2g}"
    yield "precision", Check("precision of computing", max(firsts) <= limit, evidence)


def _first_buffers(question: Question, distance: float, wider: float) -> Check:
    """Later on rounding may have grown so far that nothing can be said of running statistics; after the first update it has not."""
    limits, own = question.limits, question.noise.of("first_buffers") or 0.0
    limit = max(limits.first_buffers * wider, min(limits.nudges * own, limits.buffers_most))
    return Check("buffers", distance <= limit, f"relative distance {distance:.2g} after the first update, limit {limit:.2g}")


def _late(question: Question, far: Drift) -> Iterator[Judged]:
    """Rounding begins with the work that is done otherwise, and begins small; what sets in late and at once is something else."""
    late = [(pair, onset(pair)) for pair in question.pairs if onset(pair)]
    if question.bitwise or not late or far.first_loss is None:
        return
    limits = question.limits
    coarse = question.wider or any(any(pair.baseline.updates[at].autocast) for pair, at in late)
    limit = max(limits.late_loss_coarse if coarse else limits.late_loss, limits.nudges * (question.noise.of("first_loss") or 0.0))
    same = min(at for _, at in late)
    evidence = f"relative distance {far.first_loss:.2g} in update {same + 1}, after {same} that are bitwise the same, limit {limit:.2g}"
    yield "loss", Check("first difference", far.first_loss <= limit, evidence)


def _vectors(question: Question, pairs: Sequence[Pair], until: str) -> Iterator[Judged]:
    """What each update was given and what it changed; of all processes where it stands out first, or comes nearest to that."""
    limits, most, wider = question.limits, question.limits.vectors_most, question.limits.types if question.wider else 1.0
    if question.bitwise or math.isinf(most):
        return
    for name, kind, change, first in (
        ("gradient vectors", "gradient", "gradients", limits.early_gradients),
        ("step vectors", "step", "weights", limits.early_steps),
    ):
        found = []
        for index, pair in enumerate(pairs):
            own = courses.course(pair, kind)
            if own is None:
                return
            coarse = any(pair.baseline.updates[own.begin].autocast) if own.far else False
            least = max(first, limits.vectors) if coarse else first
            bounds = courses.Bounds(min(least * wider, most), min(limits.vectors * wider, most), limits.nudges, most)
            noise = question.noise.courses[index].get(kind, ()) if index < len(question.noise.courses) else ()
            found += filter(None, [courses.find(own, noise, bounds, whole=question.noise.nudge is not None)])
        if found:
            worst = min(found, key=lambda each: (each.ok, each.n if not each.ok else -each.far / each.limit))
            yield change, Check(name, worst.ok, worst.evidence + until)


def _loss(question: Question, far: Drift, until: str) -> Check:
    nudge = question.noise.of("mean_loss")
    limit = question.tolerance if nudge is None or nudge <= question.tolerance else question.limits.loss_nudges * nudge
    limit *= question.limits.types if question.wider and limit == question.tolerance else 1.0
    if far.mean_loss is None:
        return Check("loss", None, "no loss reached backward")
    if question.bitwise:
        return Check("loss", True, "bitwise the same")
    figures = f"mean |Δ| {far.mean_loss:.3g}, max |Δ| {far.max_loss:.3g}, limit {limit:.3g}{until}"
    ok = far.mean_loss < limit
    if question.metric and not ok:
        return Check("loss", None, f"{figures}; the project's own metric decides")
    own = " (3 × the program's own noise)" if nudge is not None and nudge > question.tolerance else ""
    return Check("loss", ok, figures + own)


def _until_it_differs(question: Question, done: str) -> Iterator[Judged]:
    """The part before the first update that was given other work; and the loss there, if only what is done with it differs."""
    same = min(pair.prefix for pair in question.pairs)
    why = ", ".join(question.moved)
    if same >= question.limits.least_updates:
        parts = [pair.before(same) for pair in question.pairs]
        far = widest([drift(part) for part in parts])
        yield from _by_update(question, parts, far, done, f" of the {same} updates before {why} changed")
        return
    for name, change in (("loss", "loss"), ("gradients", "gradients"), ("weights", "weights")):
        if name != done:
            yield change, Check(name, None, f"single updates cannot be compared: {why} changed")
    yield from _first(question)


def _first(question: Question) -> Iterator[Judged]:
    """The very first loss and gradient come from the initial weights, whatever is done with them afterwards."""
    for pair in _sides_seen(question):
        if not pair.length:
            continue
        old, new = pair.baseline.updates[0], pair.candidate.updates[0]
        if old.loss is None or new.loss is None:
            yield "loss", Check("first loss", None, "no loss reached backward in the first update")
            return
        apart = abs(old.loss - new.loss)
        if pair.relations[0] in SAME_WORK and {"mode", "shape", "targets"}.isdisjoint(question.moved):
            limit = max(question.tolerance, 1e-3 * abs(old.loss)) * (question.limits.types if question.wider else 1.0)
            why = "on the same samples from the same weights"
        else:
            values = [update.loss for update in pair.baseline.updates if update.loss is not None]
            steps = [(b - a) ** 2 for a, b in pairwise(values)]
            limit = max(question.tolerance, _FIRST_LOSS * math.sqrt(math.fsum(steps) / (2 * len(steps)))) if steps else math.inf
            why = "on other samples from the same weights"
        ok = apart <= limit if math.isfinite(limit) else None
        yield "loss", Check("first loss", ok, f"{old.loss:.6g} → {new.loss:.6g} {why}, limit {limit:.2g}")
        return


def _as_a_whole(question: Question) -> Iterator[Judged]:
    """Each process against the same process of the control runs: the worst of each check."""
    found: dict[str, Judged] = {}
    runs = [_seen(question, control.trained) for control in question.controls or () if len(control.trained) == len(question.pairs)]
    for index, pair in enumerate(_sides_seen(question)):
        composed = "order" in question.moved and {"order", "shape"} <= pair.agreed
        for change, check in spread.checks(pair, [each[index] for each in runs], question.tolerance, composed=composed):
            worst = found.get(check.name)
            if worst is None or _rank(check) < _rank(worst[1]):
                found[check.name] = (change, check)
    yield from found.values()


def _sides_seen(question: Question) -> list[Pair]:
    """The processes, with losses that can be compared where samples were dealt out to them in another way."""
    baseline, candidate = ([getattr(pair, side) for pair in question.pairs] for side in ("baseline", "candidate"))
    sides = zip(question.pairs, _seen(question, baseline), _seen(question, candidate), strict=True)
    return [replace(pair, baseline=old, candidate=new) for pair, old, new in sides]


def _seen(question: Question, streams: Sequence[Stream]) -> Sequence[Stream]:
    """`streams`; where a rank does not see what it saw before, and its losses are not what they were, with the mean losses of all."""
    return _losses_of_all(streams) if any(map(checks_of_data.dealt_otherwise, question.pairs)) else streams


def _losses_of_all(streams: Sequence[Stream]) -> tuple[Stream, ...]:
    """Each process with the mean loss of all of them in each update, where all have one."""
    losses = [[update.loss for update in updates] for updates in zip(*(stream.updates for stream in streams), strict=False)]
    means = [None if None in row else (statistics.fmean(row),) for row in losses]
    return tuple(
        replace(
            stream,
            updates=tuple(replace(update, losses=mean or update.losses) for update, mean in zip(stream.updates, means, strict=False)),
        )
        for stream in streams
    )


def _rank(check: Check) -> int:
    return {False: 0, None: 1, True: 2}[check.ok]
