"""Two recorded processes side by side: which updates match, and how their inputs relate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, TypeVar

from trainflash.fidelity import aims
from trainflash.fidelity.record import Stream, Update

T = TypeVar("T")
Relation = Literal["same", "order", "padding", "rounding", "encoded", "partly", "other"]
SAME_WORK = frozenset({"same", "padding", "rounding", "encoded"})  # the same samples meet the same targets: losses can be compared

# A program that is stopped in mid-flight has not yet written the evaluations after its last updates: see the recorder.
_UNWRITTEN = 3
_PROVEN = 20  # updates: by then most of what an optimizer, a schedule or a pipeline does otherwise shows in the losses
_KEYED = 0.4  # share of updates that come with keys: of a pair of optimizers only one updates after each batch
_INPUT_ROUNDING = 1e-4  # of the inputs' own scale: the same values computed in another way, never other values
_INPUT_ROUNDING_TYPES = 1e-2  # the same, when the inputs' data type changed


@dataclass(frozen=True)
class Pair:
    """One process of the baseline and the process of the candidate with the same rank."""

    baseline: Stream
    candidate: Stream
    baseline_whole: bool
    candidate_whole: bool
    derived: frozenset[tuple[int, int]] = frozenset()  # (optimizer, place in `Update.parts`) of inputs that come from the model itself
    agreed: frozenset[str] = frozenset()  # changes in kind that the owner agrees to
    by_chance: frozenset[str] = frozenset()  # plain values in checkpoints that chance moves
    same_updates: bool = False  # each has the same gradient and makes the same step but for rounding, however its samples are handed over
    beside: tuple[Pair, ...] = ()  # the other processes, which may have seen what this one has not

    @property
    def length(self) -> int:
        """Updates that both made."""
        return min(len(self.baseline.updates), len(self.candidate.updates))

    @property
    def closed(self) -> int:
        """Evaluations and checkpoints made after at most so many updates are recorded completely on both sides."""
        return self.length if self.baseline_whole and self.candidate_whole else self.length - _UNWRITTEN

    def closed_on(self, side: Literal["baseline", "candidate"]) -> int:
        """The same for one side of a rebatched pair, whose sides count their updates differently."""
        if not self.rebatched:
            return self.closed
        whole = self.baseline_whole if side == "baseline" else self.candidate_whole
        return len(getattr(self, side).updates) - (0 if whole else _UNWRITTEN)

    @property
    def matched(self) -> zip[tuple[Update, Update]]:
        return zip(self.baseline.updates[: self.length], self.candidate.updates[: self.length], strict=True)

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """How the inputs of each matched update relate."""
        found = tuple(self._relation(old, new) for old, new in self.matched)
        return tuple("encoded" if each in {"other", "rounding"} else each for each in found) if self._encoded(found) else found

    def _encoded(self, found: tuple[Relation, ...]) -> bool:
        """Whether all samples reach the model in another form, each always in the same one, and train it to the same bits.

        Such are pixels that the model itself makes numbers of: no sample of the one side is two of the other, or the other way round.
        """
        otherwise = self.keys is not None and not self.same_keys
        if not self.proven or otherwise or not set(found) <= {*SAME_WORK, "other"} or found.count("other") < len(found) / 2:
            return False
        both = [(old.rows, new.rows) for old, new in self.matched if old.samples or new.samples]
        if any(not old or not new or len(old) != len(new) for old, new in both):
            return False
        forms = {each for old, new in both for each in zip(old or (), new or (), strict=True)}
        return len({old for old, _ in forms}) == len({new for _, new in forms}) == len(forms)

    def _relation(self, old: Update, new: Update) -> Relation:
        given = {part for at, part in enumerate(old.parts) if (old.optimizer, at) not in self.derived}
        return "same" if self.derived and given and given <= set(new.parts) else _relation(old, new)

    @cached_property
    def bitwise(self) -> bool:
        """Whether all losses and all recorded weights of matched updates are equal to the last bit."""
        losses = all(old.losses == new.losses for old, new in self.matched)
        return losses and all(old.get("digest") == new.get("digest") for old, new in self.weights)

    @cached_property
    def alike(self) -> int:
        """First updates whose losses, gradient norms and recorded weights are equal to the last bit."""
        other = next((at for at, (old, new) in enumerate(self.matched) if _came_out(old) != _came_out(new)), self.length)
        return min([other, *(old["n"] - 1 for old, new in self.weights if old.get("digest") != new.get("digest"))])

    @cached_property
    def proven(self) -> bool:
        """Whether so much has come out bitwise the same, and been trained, that another form of the work cannot matter."""
        trained = len({old["digest"] for old, _ in self.weights if old.get("digest")}) > 1
        return self.bitwise and trained and self.length >= _PROVEN and all(old.losses for old, _ in self.matched)

    @cached_property
    def weights(self) -> tuple[tuple[dict[str, Any], dict[str, Any]], ...]:
        """Weights recorded at equal updates on both sides."""
        later = {(line["n"], line["optimizer"]): line for line in self.candidate.weights if line["n"] <= self.length}
        return tuple((line, later[key]) for line in self.baseline.weights if (key := (line["n"], line["optimizer"])) in later)

    @cached_property
    def rebatched(self) -> bool:
        """Whether most updates train on another number of samples: then what was done is compared by samples seen, not by updates."""
        if self.same_updates:
            return False
        differ = sum(old.samples != new.samples for old, new in self.matched if old.samples and new.samples)
        return 2 * differ > self.length

    @cached_property
    def aligned(self) -> tuple[tuple[Update, Update], ...]:
        """Matched updates; of a rebatched pair each update of the candidate beside the one in which the baseline saw that sample."""
        if not self.rebatched:
            return tuple(self.matched)
        ends, found, begun, at = self._ends["baseline"], [], 0, 0
        for new in self.candidate.updates:
            while at < len(ends) and ends[at] <= begun:
                at += 1
            if at == len(ends):
                break
            found.append((self.baseline.updates[at], new))
            begun += new.samples
        return tuple(found)

    @cached_property
    def prefix(self) -> int:
        """Updates before the first one that was not given the same work: up to there losses and weights must agree."""
        for index, (old, new) in enumerate(self.matched):
            alike = self.relations[index] in SAME_WORK and _work(old) == _work(new)
            if not alike or (old.targets and new.targets and aims.relation(old, new) == "other"):
                return index
        return self.length

    def before(self, updates: int) -> Pair:
        """The first so many updates of both, as a record that was cut there."""
        return Pair(_cut(self.baseline, updates), _cut(self.candidate, updates), False, False, self.derived, self.agreed, self.by_chance)

    def place(self, side: Literal["baseline", "candidate"], n: int) -> int:
        """Where something done after `n` updates is to be compared: at `n`, in a rebatched pair at so many samples."""
        if not self.rebatched or n == 0:
            return n
        ends = self._ends[side]
        return ends[min(n, len(ends)) - 1]

    @cached_property
    def _ends(self) -> dict[str, tuple[int, ...]]:
        """Samples trained on up to the end of each update."""
        return {side: tuple(accumulate(update.samples for update in getattr(self, side).updates)) for side in ("baseline", "candidate")}

    @cached_property
    def keys(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Keys of all samples that the loaders drew, in order, of both sides; None where one has no such loader for all of its updates."""
        both = []
        for stream in (self.baseline, self.candidate):
            updates = stream.updates if self.rebatched else stream.updates[: self.length]
            drawn = [key for update in updates for key in update.keys or ()]
            if not drawn or sum(update.keys is not None for update in updates) < _KEYED * len(
                {update.n for update in updates if update.samples}
            ):
                return None
            both.append(tuple(drawn))
        return both[0], both[1]

    @cached_property
    def same_keys(self) -> bool:
        """Whether both loaders drew the same samples in the same order, however they are cut into batches."""
        return self.keys is not None and all(a == b for a, b in zip(*self.keys, strict=False))

    @property
    def samples(self) -> tuple[int, int]:
        """Samples of all updates of the baseline, and of the candidate."""
        return self._ends["baseline"][-1], self._ends["candidate"][-1]

    def first(self, what: Callable[[Update], T], equal: Callable[[T, T], bool] = lambda old, new: old == new) -> tuple[int, T, T] | None:
        """`(update, baseline's value, candidate's value)` of the first matched update where `what` is not equal."""
        for old, new in self.aligned:
            if not equal(what(old), what(new)):
                return old.n, what(old), what(new)
        return None


def _work(update: Update) -> tuple[Any, ...]:
    settings = [{key: value for key, value in group.items() if key != "values"} for group in update.settings]
    modes = sorted({tuple(mode[1:]) for mode in update.modes})
    return update.optimizer, update.optimizer_class, update.samples, modes, settings, update.grad_elements


def _came_out(update: Update) -> tuple[Any, ...]:
    return update.losses, update.grad_norm


def _cut(stream: Stream, updates: int) -> Stream:
    parts = {
        name: tuple(line for line in getattr(stream, name) if line["n"] <= updates) for name in ("weights", "evaluations", "checkpoints")
    }
    return replace(stream, updates=stream.updates[:updates], ended=False, **parts)


def _relation(old: Update, new: Update) -> Relation:
    if old.multiset == new.multiset and old.samples == new.samples:
        return "same" if old.order == new.order else "order"
    if old.trimmed and new.trimmed and old.samples == new.samples and old.trimmed[0] == new.trimmed[0]:
        return "padding" if old.trimmed[1] == new.trimmed[1] else "order"
    if old.parts and len(old.parts) == len(new.parts) and old.forwards == new.forwards:
        same = [a == b for a, b in zip(old.parts, new.parts, strict=True)]
        if same[0] and not all(same) and _inputs_each(old) > 1 and all(same[at] for at in range(0, len(same), _inputs_each(old))):
            return "partly"
    types = [shape.split("[")[0] for shape in old.shapes] != [shape.split("[")[0] for shape in new.shapes]
    limit = _INPUT_ROUNDING_TYPES if types else _INPUT_ROUNDING
    if old.samples == new.samples and old.whole == new.whole and any(old.moments) and len(old.moments) == 3:
        total, square, ramp = (abs(left - right) for left, right in zip(old.moments, new.moments, strict=True))
        # Sums of n values of this size: by Cauchy-Schwarz they are at most √(n · squares); n is bounded by the samples' elements.
        scale = math.sqrt(old.moments[1] * max(1, elements(old)))
        if square <= limit * old.moments[1] and total <= limit * scale and ramp <= limit * scale:
            return "rounding"
    return "other"


def _inputs_each(update: Update) -> int:
    """Input tensors of each forward, where all have as many; else 1."""
    return len(update.parts) // update.forwards if update.forwards and len(update.parts) % update.forwards == 0 else 1


def elements(update: Update) -> int:
    """Values in all inputs of an update, as far as its shapes say."""
    sizes = [shape[shape.index("[") + 1 : -1] for shape in update.shapes]
    return update.samples * sum(math.prod(int(side) for side in size.split(",") if side) for size in sizes)


def epoch_starts(stream: Stream, length: int) -> tuple[int, ...]:
    """Indices of updates that begin an epoch, the first one included, within the first `length` updates.

    Seen by the training loader having begun anew; without a loader by a sample that was trained on before.
    """
    updates = stream.updates[:length]
    starts = [index for index in range(1, len(updates)) if updates[index].epoch > updates[index - 1].epoch >= 1]
    if not starts:
        seen: set[str] = set()
        for index, update in enumerate(updates):
            if update.rows and not seen.isdisjoint(update.rows):
                starts.append(index)
                seen = set()
            seen.update(update.rows or ())
    return (0, *starts) if updates else ()


def seen_occasions(stream: Stream, length: int, whole: bool) -> tuple[str, ...]:
    """Which of epoch boundary, evaluation, checkpoint and schedule the first `length` updates contain."""
    closed = length if whole else length - _UNWRITTEN
    rates: dict[int, set[tuple[Any, ...]]] = {}
    for update in stream.updates[:length]:
        rates.setdefault(update.optimizer, set()).add(tuple(group.get("lr") for group in update.settings))
    found = {
        "epoch boundary": len(epoch_starts(stream, length)) > 1,
        "evaluation": any(line["forwards"] and 0 < line["n"] <= closed for line in stream.evaluations),
        "checkpoint": any(0 < line["n"] <= closed for line in stream.checkpoints),
        "schedule": any(len(different) > 1 for different in rates.values()),
    }
    return tuple(name for name, yes in found.items() if yes)
