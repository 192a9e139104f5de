"""From two records to one `Fidelity`: pure, and closed against every kind of missing evidence.

Hard signals (`RULES`) decide first. Only where all of them agree do losses, gradients and weights decide, against the tolerance and against
the baseline's own noise: how far it lies from itself when started again, and when its weights are changed in their last place (the nudge).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from trainflash.fidelity import aims, checks, checks_of_data, checks_of_evaluations, courses, drift, saved, soft
from trainflash.fidelity.courses import Course, begins_as_rounding, course
from trainflash.fidelity.outcome import Outcome
from trainflash.fidelity.pairing import Pair, seen_occasions
from trainflash.fidelity.record import Record
from trainflash.fidelity.soft import Limits, Noise, Question
from trainflash.schema import OCCASIONS, Check, Fidelity


@dataclass(frozen=True)
class Rule:
    """A hard signal, and what has changed in kind when it fails."""

    name: str
    change: str
    outcome: Callable[[Pair], Outcome]
    by_chance: bool = False  # what a second run of the baseline moves is left out by name; until it was made, a difference may be that


RULES = (
    Rule("updates", "updates", checks.updates),
    Rule("batch", "batch", checks.batch),
    Rule("input shapes", "shape", checks_of_data.shapes),
    Rule("samples", "samples", checks_of_data.samples),
    Rule("order", "order", checks_of_data.order),
    Rule("streams of workers", "randomness", checks_of_data.workers),
    Rule("fresh random values", "randomness", checks_of_data.fresh),
    Rule("targets", "targets", checks_of_data.targets),
    Rule("train mode", "mode", checks.mode),
    Rule("optimizer", "optimizer", checks.optimizer),
    Rule("learning rate and weight decay", "schedule", checks.schedule),
    Rule("coverage", "coverage", checks.coverage),
    Rule("averages", "weights", checks.averages),
    Rule("clipping", "clipping", checks.clipping),
    Rule("data types", "precision", checks.types),
    Rule("input values", "numerics", checks_of_data.input_values),
    Rule("target values", "numerics", checks_of_data.target_values),
    Rule("evaluation inputs", "evaluation", checks_of_evaluations.inputs),
    Rule("evaluation targets", "evaluation", checks_of_evaluations.targets),
    Rule("evaluated networks", "evaluation", checks_of_evaluations.networks),
    Rule("evaluation data types", "precision", checks_of_evaluations.types),
    Rule("evaluation results", "evaluation", checks_of_evaluations.results),
    Rule("evaluation cadence", "cadence", checks_of_evaluations.cadences),
    Rule("checkpoint contents", "checkpoint", saved.contents),
    Rule("checkpoint values", "checkpoint", saved.values, by_chance=True),
    Rule("checkpoint files", "checkpoint", saved.files),
    Rule("checkpoint cadence", "cadence", saved.checkpoint_cadence),
    Rule("log cadence", "cadence", checks.log_cadence),
    Rule("random streams", "random", checks.random_streams),
)
# What drift that begins with rounding can be seen in; not in the vectors, where each update is held against what had drifted before.
_DRIFTS = frozenset({"loss", "weights", "final weights", "averaged weights", "evaluation outputs"})
_FEWER, _SCATTER = 0.1, 5.0  # of the distinct samples; times the difference of two runs of the baseline
_CHANGE = {rule.name: rule.change for rule in RULES}
_BY_CHANCE = frozenset(rule.name for rule in RULES if rule.by_chance)

# What the program's own figures explain, where the training is the same: see `printed.vouched`.
_OF_EVALUATIONS = frozenset({"evaluation inputs", "evaluation targets", "evaluated networks", "evaluation results", "evaluation cadence"})
# What the same gradient and the same step in every update explain: samples may be handed over in other portions, forms and numbers.
_EXPLAINED = frozenset({"batch", "input shapes", "samples", "order", "targets", "fresh random values", "data types"})
# After these the losses and weights of single updates cannot be compared any more.
_MOVES_LOSSES = frozenset({"updates", "batch", "shape", "samples", "order", "targets", "mode", "optimizer", "schedule", "coverage"})


def compare(
    baseline_record: Record,
    candidate_record: Record,
    *,
    tolerance: float = 1e-3,
    rerun: Record | None = None,
    nudged: Record | None = None,
    nudges: Sequence[Record] = (),
    controls: Sequence[Record] | None = None,
    metric: Check | None = None,
    limits: Limits | None = None,
    agreed: frozenset[str] = frozenset(),
    chance_known: bool = True,
) -> Fidelity:
    """Does the candidate still train the same?

    `tolerance` is the mean |Δ| of the loss per update below which a training that is not bitwise the same is "close". `rerun` is a second
    record of the baseline, `nudged` one whose initial weights were changed by one unit in the last place, `nudges` are more of these,
    changed in other ways; without them every difference counts as the candidate's. `controls` are further baseline runs that differ by
    chance, for what cannot be compared update by update; `metric` is the answer of the project's own metric, which then decides instead of
    `tolerance`.
    With `chance_known` False nobody will make a second run of the baseline for this comparison: what it would have to tell is left open.
    `agreed` are changes in kind that the owner agrees to: what they alone may hide is left open instead of held against the candidate.
    Raises nothing: what cannot be compared is `inconclusive`, with the reason.
    """
    limits = limits or Limits()
    pairs = _pairs(baseline_record, candidate_record, agreed)
    if pairs is None:
        return _unpaired(baseline_record, candidate_record, tolerance)
    noise = measure_noise(baseline_record, rerun, nudged, nudges)
    pairs = tuple(replace(pair, derived=noise.derived, by_chance=_chance(pair, noise)) for pair in pairs)
    alike = same_updates(pairs, noise, limits)
    pairs = tuple(replace(pair, same_updates=alike) for pair in pairs)
    found_hard = _hard(pairs) if chance_known else _certain(_hard(pairs))
    hard = tuple(_explained(check) if alike and check.name in _EXPLAINED else _excused(check, noise, pairs) for check in found_hard)
    failed = _changes(hard)
    far = drift.widest([drift.drift(pair) for pair in pairs])
    bitwise = all(pair.bitwise for pair in pairs) and not far.evaluated_weights and not any(saved.rounded(pair) for pair in pairs)
    restless = _unsteady(noise, tolerance, limits)
    question = Question(
        pairs, far, noise, tolerance, limits, tuple(sorted(failed & _MOVES_LOSSES)), "precision" in failed, bitwise, restless, controls,
        metric is not None,
    )  # fmt: skip
    judged = [*soft.checks(question), *([("metric", metric)] if metric is not None else [])]
    seen = _seen(pairs)
    changes = [_CHANGE[check.name] for check in hard if check.ok is False] + [change for change, check in judged if check.ok is False]
    result = Fidelity(
        verdict="inconclusive",
        changed=tuple(dict.fromkeys(changes)),
        mean_abs_loss_delta=_finite(far.mean_loss),
        max_abs_loss_delta=_finite(far.max_loss),
        tolerance=tolerance,
        updates=min(pair.length for pair in pairs),
        seen=seen,
        not_seen=tuple(name for name in OCCASIONS if name not in seen),
        checks=(*hard, *(check for _, check in judged)),
        not_judged=() if bitwise and not question.moved else tuple(check.name for _, check in judged if check.ok is None),
        notes=_notes(baseline_record, candidate_record),
    )
    found = _decided(result, failed, _unusable(pairs, limits), noise, bitwise, restless, controls, _torn_off(pairs))
    unfinished = _unfinished(pairs)
    if unfinished and found.verdict != "inconclusive" and set(found.changed) <= agreed | {"numerics"}:
        return replace(found, verdict="inconclusive", reasons=(unfinished, *found.reasons))
    return found


def _decided(
    result: Fidelity,
    failed: frozenset[str],
    unusable: str,
    noise: Noise,
    bitwise: bool,
    unsteady: bool,
    controls: Sequence[Record] | None,
    torn_off: str,
) -> Fidelity:
    differences = tuple(f"{check.name}: {check.evidence}" for check in result.checks if check.ok is False)
    if torn_off:
        return replace(result, verdict="inconclusive", changed=(), reasons=(torn_off, *differences))
    if noise.by_time is not None and failed <= {"updates", "cadence", "schedule"}:
        made = "made {} updates, and {} when it was started again".format(*noise.by_time)
        why = f"the program's length depends on time: it {made}, equal until then; give it a number of steps"
        return replace(result, verdict="inconclusive", changed=(), reasons=(why, *differences))
    if failed - {"numerics"} or (set(result.changed) - {"numerics"} and (not unsteady or controls is not None)):
        return replace(result, verdict="changed", reasons=(*differences, *_unjudged(result)))
    if unsteady and not bitwise:
        names = sorted(check.name for check in result.checks if check.ok is None and check.name in noise.rerun_failed) or ["its losses"]
        why = f"the program does not repeat itself: {', '.join(names)} differ between two runs of the baseline; set a seed"
        compared = [check for check in result.checks if check.name.endswith("in distribution") and check.ok]
        if controls is None or unusable or not compared:
            return replace(result, reasons=(why, *([unusable] if unusable else ()), *differences, *_unjudged(result)))
        within = f"the candidate lies within the spread of {len(controls) + 1} runs of the baseline"
        return replace(result, verdict="close", changed=("numerics",), reasons=(why, within, *_unjudged(result)))
    if unusable:
        return replace(result, reasons=(unusable, *differences))
    if any(check.name == "metric" and check.ok is None for check in result.checks):
        return replace(result, reasons=(next(check.evidence for check in result.checks if check.name == "metric"), *differences))
    if bitwise and not result.changed:
        return replace(result, verdict="same", reasons=(f"losses and weights of {result.updates} updates are bitwise the same",))
    distance = f"mean |Δ loss| {result.mean_abs_loss_delta:.2g} over {result.updates} updates{_noise_note(noise)}"
    return replace(result, verdict="close", changed=("numerics",), reasons=(distance, *differences))


def _unjudged(result: Fidelity) -> tuple[str, ...]:
    return (f"not judged: {', '.join(result.not_judged)}",) if result.not_judged else ()


def _notes(baseline: Record, candidate: Record) -> tuple[str, ...]:
    seeded = [stream.seeded for stream in baseline.streams if stream.seeded is not None]
    notes = ["the program sets no seed of its own: both sides ran under one of ours"] if seeded and not any(seeded) else []
    if given := max((stream.given for stream in baseline.streams), default=0):
        which = "a random generator" if given == 1 else f"{given} random generators"
        notes += [f"{which} that the program makes without a seed got one of ours, alike on both sides"]
    notes += [note for record in (candidate, baseline) for stream in record.streams for note in saved.unseen(stream)]
    return tuple(dict.fromkeys(notes))


def only_drifts(found: Fidelity, baseline: Record, candidate: Record, nudged: Record | None, agreed: frozenset[str] = frozenset()) -> bool:
    """Whether the candidate begins with rounding of the nudge's size and no update stands out, and yet ends farther off than the nudge.

    `agreed` are changes in kind that the owner agrees to, beside which it may drift. Where activations meet a kink, two of the same size
    or sums that cancel out, a unit in the last place moves a training for good. Whether one nudge of the weights meets such a place is
    chance.
    """
    failed = {check.name for check in found.checks if check.ok is False and _CHANGE.get(check.name) not in agreed}
    pairs = _pairs(baseline, candidate, agreed)
    if not failed or not failed <= _DRIFTS or pairs is None or nudged is None:
        return False
    drifts = measure_noise(baseline, None, nudged).courses
    begun = [(course(pair, "gradient"), own["gradient"]) for pair, own in zip(pairs, drifts, strict=False)]
    return len(begun) == len(pairs) and all(own is not None and begins_as_rounding(own, noise, Limits().nudges) for own, noise in begun)


def measure_noise(baseline: Record, rerun: Record | None, nudged: Record | None, nudges: Sequence[Record] = ()) -> Noise:
    """What the baseline does to itself when it is started again, and when its weights are nudged, once or in other ways too."""
    others = [pairs for record in nudges if (pairs := _pairs(baseline, record)) is not None]
    again, apart = (None if record is None else _pairs(baseline, record) for record in (rerun, nudged))
    return Noise(
        rerun_failed=frozenset(check.name for check in _hard(again or ()) if check.ok is False),
        nudge_failed=frozenset(check.name for check in _hard(apart or ()) if check.ok is False),
        derived=_derived(apart or ()) if again is not None and not _moved(again) else frozenset(),
        distinct=tuple((pair.length, *checks_of_data.distinct_samples(pair)[:2]) for pair in again or ()),
        saved_rerun=frozenset().union(*(saved.differing(pair) for pair in again or ())),
        by_time=_by_time(again or ()),
        saved_nudge=frozenset().union(*(saved.differing(pair) for pair in apart or ())),
        rerun=drift.widest([drift.drift(pair) for pair in again]) if again else None,
        nudge=drift.widest([drift.drift(pair) for pair in apart]) if apart else None,
        nudges=tuple(drift.widest([drift.drift(pair) for pair in pairs]) for pairs in others),
        courses=tuple(_courses(pairs) for pairs in zip_longest(again or (), apart or (), *others)),
    )


def _courses(pairs: Iterable[Pair | None]) -> dict[str, tuple[Course, ...]]:
    """How far vectors of each kind drift in the second run and in the nudged run of one process."""
    known = [pair for pair in pairs if pair is not None]
    return {kind: tuple(filter(None, (course(pair, kind) for pair in known))) for kind in ("gradient", "step")}


def _by_time(again: Sequence[Pair]) -> tuple[int, int] | None:
    """How many updates two runs of the baseline made that ended by themselves, after others each, and were equal until then."""
    lengths = [(len(pair.baseline.updates), len(pair.candidate.updates)) for pair in again]
    ended = all(pair.bitwise and pair.baseline_whole and pair.candidate_whole for pair in again)
    return next((both for both in lengths if both[0] != both[1]), None) if ended else None


def _moved(pairs: Iterable[Pair]) -> bool:
    return any(relation != "same" for pair in pairs for relation in pair.relations)


def _derived(pairs: Iterable[Pair]) -> frozenset[tuple[int, int]]:
    """Inputs that the nudge of the weights moves: they come from the model itself, as those of a critic do."""
    found = set()
    for pair in pairs:
        for old, new in pair.matched:
            parts = enumerate(zip(old.parts, new.parts, strict=False))
            found |= {(old.optimizer, at) for at, (a, b) in parts if a != b}
    return frozenset(found)


def unsteady(baseline: Record, rerun: Record, tolerance: float, limits: Limits | None = None) -> bool:
    """Whether the baseline does other work, or comes out elsewhere, when it is started again: then only whole runs can be compared."""
    return _unsteady(measure_noise(baseline, rerun, None), tolerance, limits or Limits())


def ends_by_time(baseline: Record, rerun: Record) -> bool:
    """Whether the baseline's length depends on something else than what it trains: then no two of its runs are the same training."""
    return measure_noise(baseline, rerun, None).by_time is not None


def _unsteady(noise: Noise, tolerance: float, limits: Limits) -> bool:
    return noise.restless(tolerance, limits) or any(_CHANGE[name] in _MOVES_LOSSES for name in noise.rerun_failed)


def change_of(check: str) -> str:
    """What has changed in kind when this check fails."""
    return _CHANGE.get(check, check)


def hard_changes(baseline: Record, candidate: Record, agreed: frozenset[str] = frozenset()) -> frozenset[str]:
    """What has changed in kind, by hard signals alone; empty when there is nothing to compare (yet)."""
    pairs = _pairs(baseline, candidate, agreed) or ()
    alike = begins_alike(baseline, candidate)
    found = _certain(_hard(tuple(replace(pair, same_updates=alike) for pair in pairs)))
    return _changes(_explained(check) if alike and check.name in _EXPLAINED else check for check in found)


def evaluates_otherwise(baseline: Record, candidate: Record, found: Fidelity) -> bool:
    """Whether nothing but how evaluations are made stands against a candidate whose training is the same to the bit."""
    failed = {check.name for check in found.checks if check.ok is False}
    return found.verdict == "changed" and bool(failed) and failed <= _OF_EVALUATIONS and bitwise(baseline, candidate)


def bitwise(baseline: Record, candidate: Record) -> bool:
    """Whether all that was trained on both sides is the same to the bit."""
    pairs = _pairs(baseline, candidate)
    return bool(pairs) and all(pair.bitwise for pair in pairs or ())


def another_gradient(baseline: Record, candidate: Record) -> float | None:
    """How far the first gradient of any process is from the baseline's, though its loss is the same to the bit; see `courses`."""
    found = [courses.another_gradient(pair) for pair in _pairs(baseline, candidate) or ()]
    return max((far for far in found if far is not None), default=None)


def lacks_an_epoch(baseline: Record, candidate: Record, agreed: frozenset[str] = frozenset()) -> bool:
    """Whether only what comes behind an epoch's end, which was not seen, can tell what a change in how batches are made does."""
    pairs = _pairs(baseline, candidate, agreed) or ()
    alike = begins_alike(baseline, candidate)
    return bool(_unfinished(tuple(replace(pair, same_updates=alike) for pair in pairs)))


def nothing(tolerance: float) -> Fidelity:
    """What is known before anything was compared."""
    return Fidelity("inconclusive", (), None, None, tolerance, 0, (), OCCASIONS, ())


def _unfinished(pairs: Iterable[Pair]) -> str:
    return next(filter(None, map(checks_of_data.unfinished, pairs)), "")


def begins_alike(baseline: Record, candidate: Record) -> bool:
    """Whether the first updates that differ have the same gradients and make the same steps but for rounding: the rest may, too."""
    pairs = _pairs(baseline, candidate)
    return bool(pairs) and all(courses.agrees(pair, {}, 0.0, most=courses.FIRST) for pair in pairs or ())


def _pairs(old: Record, new: Record, agreed: frozenset[str] = frozenset()) -> tuple[Pair, ...] | None:
    left, right = ([stream for stream in record.streams if stream.updates] for record in (old, new))
    if not left or [stream.rank for stream in left] != [stream.rank for stream in right]:
        return None
    pairs = tuple(Pair(a, b, old.whole, new.whole, agreed=agreed) for a, b in zip(left, right, strict=True))
    return tuple(replace(pair, beside=tuple(other for other in pairs if other is not pair)) for pair in pairs)


def _unpaired(old: Record, new: Record, tolerance: float) -> Fidelity:
    reached, trained = ([stream.rank for stream in record.streams if stream.updates] for record in (old, new))
    empty = nothing(tolerance)
    if not reached:
        return replace(empty, reasons=("the baseline never completed an optimizer update",))
    evidence = f"{len(reached)} training processes → {len(trained)}" if trained else "the candidate never completed an optimizer update"
    return replace(empty, verdict="changed", changed=("updates",), checks=(Check("updates", False, evidence),), reasons=(evidence,))


def _hard(pairs: tuple[Pair, ...]) -> tuple[Check, ...]:
    """Each rule once: its worst outcome over all processes."""
    found = []
    for rule in RULES if pairs else ():
        outcomes = [(pair.baseline.rank, rule.outcome(pair)) for pair in pairs]
        rank, worst = min(outcomes, key=lambda each: {False: 0, None: 1, True: 2}[each[1].ok])
        where = f"rank {rank}: " if len(pairs) > 1 and worst.ok is False else ""
        found.append(Check(rule.name, worst.ok, where + worst.evidence, worst.counts))
    return tuple(found)


def same_updates(pairs: Iterable[Pair], noise: Noise, limits: Limits) -> bool:
    """Whether every update of every process had the same gradient and made the same step, but for rounding."""
    known = [(pair, noise.courses[index] if index < len(noise.courses) else {}) for index, pair in enumerate(pairs)]
    long = all(pair.length >= limits.least_updates and all(old.losses for old, _ in pair.matched) for pair, _ in known)
    return long and all(courses.agrees(pair, own, limits.nudges) for pair, own in known)


def _explained(check: Check) -> Check:
    if check.ok is not False:
        return check
    return replace(
        check, ok=True, evidence=f"{check.evidence}; yet every update has the same gradient and makes the same step but for rounding"
    )


def _chance(pair: Pair, noise: Noise) -> frozenset[str]:
    return noise.saved_rerun if pair.bitwise else noise.saved_rerun | noise.saved_nudge


def _certain(found: Iterable[Check]) -> tuple[Check, ...]:
    """Without differences of which only a second run of the baseline tells whether they are chance."""
    later = "; whether two runs of the baseline differ in it too was not looked at"
    return tuple(
        replace(check, ok=None, evidence=check.evidence + later) if check.ok is False and check.name in _BY_CHANCE else check
        for check in found
    )


def _changes(found: Iterable[Check]) -> frozenset[str]:
    return frozenset(_CHANGE[check.name] for check in found if check.ok is False)


def _excused(check: Check, noise: Noise, pairs: tuple[Pair, ...]) -> Check:
    """What the baseline shows against itself says nothing about the candidate."""
    if check.name in _BY_CHANCE:
        return check  # left out one by one
    if check.ok is False and check.name == "samples" and (fewer := _fewer_distinct(pairs, noise)):
        return replace(check, evidence=fewer)
    if check.ok is False and check.name in noise.rerun_failed:
        return replace(check, ok=None, evidence=f"{check.evidence}; two runs of the baseline differ in it too")
    if check.name == "target values":
        return check  # never the same: also where all that follows comes out equal to the bit
    if check.ok is False and _moved_by_nudge(check.name, noise, pairs) and not _before_any_rounding(check.name, pairs):
        return replace(check, ok=None, evidence=f"{check.evidence}; so does the baseline when only its rounding differs")
    return check


def _moved_by_nudge(name: str, noise: Noise, pairs: tuple[Pair, ...]) -> bool:
    """Targets that follow the trained weights may drift with them, farther than the nudged run's own; other targets they are not."""
    if name != "targets" or "target values" not in noise.nudge_failed or name in noise.nudge_failed:
        return name in noise.nudge_failed
    coarser = any(checks.types(pair).ok is False for pair in pairs)
    return coarser or all(checks_of_data.targets(pair, aims.FOLLOWING).ok is not False for pair in pairs)


def _before_any_rounding(name: str, pairs: tuple[Pair, ...]) -> bool:
    """Whether the signal differs where the training has not: rounding that has not begun moves nothing.

    The update at which losses part counts too: what it was given came before its loss. One equal update shows nothing yet, for what an
    optimizer rounds otherwise in its first step is seen in the second loss. Targets may be what a network has answered, also to a
    validation's batches: those of another size round it otherwise, and nothing of that reaches the training.
    """
    if _CHANGE[name] == "targets" or name == "evaluation targets":
        return False
    outcome = next(rule.outcome for rule in RULES if rule.name == name)
    untouched = [pair if pair.bitwise else pair.before(pair.alike + 1) for pair in pairs if pair.bitwise or pair.alike > 1]
    return any(outcome(pair).ok is False for pair in untouched)


def _fewer_distinct(pairs: tuple[Pair, ...], noise: Noise) -> str:
    """Samples that are drawn anew in each run: which ones they are is chance, how many different ones is not."""
    for pair, (updates, first, second) in zip(pairs, noise.distinct, strict=False):
        new = checks_of_data.distinct_samples(pair)[1]
        if updates == pair.length and 0 < new < min(first, second) - max(_FEWER * first, _SCATTER * abs(first - second)):
            return f"distinct samples {first} → {new}; in a second run of the baseline {second}"
    return ""


def _torn_off(pairs: tuple[Pair, ...]) -> str:
    """A record that ends before its program does tells nothing about the rest: a full disk, or a program that leaves without notice."""
    for pair in pairs:
        for side, stream, whole in (("baseline", pair.baseline, pair.baseline_whole), ("candidate", pair.candidate, pair.candidate_whole)):
            if whole and not stream.ended:
                return f"the record of the {side} stops before the program does: is the disk full, or does it leave by os._exit?"
    return ""


def _unusable(pairs: tuple[Pair, ...], limits: Limits) -> str:
    for pair in pairs:
        if pair.baseline.broken or pair.candidate.broken:
            return "a record is damaged: part of it cannot be read"
        if lost := sorted(set(pair.candidate.swallowed) - set(pair.baseline.swallowed)):
            return f"the recorder could not measure {', '.join(lost)} in the candidate"
        if pair.length < limits.least_updates:
            return f"only {pair.length} updates could be compared, at least {limits.least_updates} are needed"
        losses = [update.loss for update, _ in pair.matched]
        if all(loss is None for loss in losses):
            return "no loss was seen: nothing calls backward on a tensor"
        if any(loss is not None and not math.isfinite(loss) for loss in losses):
            return "the baseline's own loss is not finite"
        if not pair.weights:
            return "no weights were recorded on both sides after the same update"
    return ""


def _seen(pairs: tuple[Pair, ...]) -> tuple[str, ...]:
    whole = all(pair.baseline_whole and pair.candidate_whole for pair in pairs)
    found = {name for pair in pairs for name in seen_occasions(pair.baseline, pair.length, whole)}
    return tuple(name for name in OCCASIONS if name in found)


def _noise_note(noise: Noise) -> str:
    parts = []
    if noise.rerun is not None and noise.rerun.mean_loss is not None:
        parts.append(f"{noise.rerun.mean_loss:.2g} between two runs of the baseline")
    if noise.nudge is not None and noise.nudge.mean_loss is not None:
        parts.append(f"{noise.nudge.mean_loss:.2g} when its weights change in the last place")
    return f" ({', '.join(parts)})" if parts else ""


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
