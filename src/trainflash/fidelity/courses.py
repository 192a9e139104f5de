"""Gradients and steps as vectors, update by update: what is done wrongly at some update stands out there.

Rounding that is done otherwise turns a gradient by 1e-7 to 1e-2 of its length, and the trainings drift apart by little more from one
update to the next; a batch that counts twice, a lost mask or an optimizer's state that was thrown away turns it by a tenth or more at
once. Two updates later little of that is left in the loss, and the weights may be as near as those of a program whose rounding differs.
"""

from __future__ import annotations

import math
import statistics
import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainflash.fidelity.drift import relative
from trainflash.fidelity.pairing import Pair
from trainflash.fidelity.record import Update

FIRST = 3  # updates from the first difference on, before which nothing has drifted
_ALIKE = 1e-4  # relative: a sample that is left out of a thousand turns a gradient by some 1e-2
_ALIKE_MOST = 5e-2  # the same, however far rounding has drifted
_ROUNDING = 1e-5  # relative, of a gradient in float32
_LEAST_NUDGES = 3.0  # times the noise, where more would pass `Bounds.most`
_USUAL = 20  # updates whose lengths say which is usual
_LEAST_LENGTH = 0.1  # of the usual length: rounding of a gradient that has almost vanished is not held against what is left of it


@dataclass(frozen=True)
class Course:
    """Relative distances of one kind of vector, from the first update on that is not bitwise the same (`begin`, an index)."""

    begin: int
    far: tuple[float, ...]

    def before(self, place: int) -> float:
        """The largest before `place`; 0 for none."""
        return max(self.far[:place], default=0.0)


@dataclass(frozen=True)
class Bounds:
    """How far vectors may be apart: `first` in the first updates that differ, `later` from then on, `most` however large the noise is."""

    first: float
    later: float
    nudges: float  # times the noise
    most: float

    def limit(self, place: int, noise: float) -> float | None:
        """At so many updates after the first difference; None where the noise is so large that a limit would tell nothing."""
        if _LEAST_NUDGES * noise > self.most:
            return None
        return max(self.first if place < FIRST else self.later, min(self.nudges * noise, self.most))


@dataclass(frozen=True)
class Finding:
    """Where one course stands out, or comes nearest to that."""

    ok: bool
    n: int  # the update
    far: float
    limit: float
    compared: int

    @property
    def evidence(self) -> str:
        where = f"relative distance {self.far:.2g} in update {self.n}, limit {self.limit:.2g}"
        return f"{where} ({self.compared} compared, from the first difference on)" if self.ok else where


def course(pair: Pair, kind: str) -> Course | None:
    """How far the vectors of `kind` (a field of `Update`) are apart; None where they were not recorded on both sides."""
    both = [(old, new) for old, new in pair.matched if getattr(old, kind) and getattr(new, kind)]
    if not both or len(both) < pair.length:
        return None
    begin = next((at for at, (old, new) in enumerate(both) if getattr(old, kind) != getattr(new, kind)), pair.length)
    return Course(begin, tuple(_distances(both, kind, begin)))


def another_gradient(pair: Pair) -> float | None:
    """How far the first gradient is from the baseline's where the first loss is the same to the bit; None: as near as rounding takes it.

    A way back that was cut moves no loss: the loss falls by less later on, which rounding may hide.
    """
    own = course(pair, "gradient")
    if own is None or own.begin or not own.far or not pair.length:
        return None
    old, new = pair.baseline.updates[0], pair.candidate.updates[0]
    return own.far[0] if old.losses and old.losses == new.losses and own.far[0] > _ALIKE else None


def agrees(pair: Pair, noise: Mapping[str, Sequence[Course]], nudges: float, *, most: int | None = None) -> bool:
    """Whether every update had the gradient, and made the step, of the baseline but for rounding and its drift; False: not recorded.

    `most`: only so many updates from the first difference on are asked.
    """
    for kind in ("gradient", "step"):
        own = course(pair, kind)
        if own is None:
            return False
        for place, far in enumerate(own.far[:most]):
            drifted = max((each.before(place + 1) for each in noise.get(kind, ())), default=0.0)
            if far > max(_ALIKE, min(nudges * drifted, _ALIKE_MOST)):
                return False
    return True


def begins_as_rounding(own: Course, noise: Sequence[Course], nudges: float) -> bool:
    """Whether it differs from the first updates on, by no more than some times as much as the nudged baseline does there."""
    known = max((each.before(FIRST) for each in noise), default=0.0)
    return own.begin < FIRST and own.before(FIRST) <= max(_ROUNDING, nudges * known)


def _distances(both: Sequence[tuple[Update, Update]], kind: str, begin: int) -> Iterator[float]:
    usual: dict[int, deque[float]] = {}
    for at, (old, new) in enumerate(both):
        left, right = getattr(old, kind), getattr(new, kind)
        ours, theirs = _sums(left), _sums(right)
        lengths = usual.setdefault(old.optimizer, deque(maxlen=_USUAL))
        lengths.append(math.hypot(*ours))
        if at >= begin:
            size = max(lengths[-1], _LEAST_LENGTH * statistics.median(lengths))
            yield 0.0 if left == right else relative(math.dist(ours, theirs), size)


def _sums(packed: str) -> tuple[float, ...]:
    return struct.unpack(f"<{len(packed) // 8}f", bytes.fromhex(packed))


def find(own: Course, noise: Sequence[Course], bounds: Bounds, *, whole: bool) -> Finding | None:
    """Whether anything stands out, from the first difference to the end; not `whole`: in the first updates from there on.

    `noise` are courses of the baseline beside itself. What has drifted so far counts as noise too: what comes next is a jump or it is not.
    None: nothing could be compared.
    """
    nearest, compared = None, 0
    for place, far in enumerate(own.far if whole else own.far[:FIRST]):
        before = max([own.before(place), *(each.before(place + 1) for each in noise)])
        limit = bounds.limit(place, before)
        if limit is None:
            break
        compared += 1
        found = Finding(far <= limit, own.begin + place + 1, far, limit, compared)
        if not found.ok:
            return found
        if nearest is None or far * nearest.limit > nearest.far * limit:
            nearest = found
    return None if nearest is None else Finding(True, nearest.n, nearest.far, nearest.limit, compared)
