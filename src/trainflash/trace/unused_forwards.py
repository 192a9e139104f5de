"""Evaluations that nothing announces: no `eval()`, no `no_grad`, and yet no backward ever follows their forwards.

Where nearly every backward follows the same number of forwards, far more of them in front of one were an evaluation, which ended with the
batch that was trained on. Episodes and sequences of changing length have no such number and are left alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainflash.schema.runs import PHASES
from trainflash.trace.accounting import EVAL, NOT_IN_EVAL, OTHER, Spans
from trainflash.trace.words import Codes

USUAL = 0.7  # own: part of all backwards that follow the same number of forwards; an evaluation each third step is not told from training
LEAST = 8  # own: backwards, before there is a usual number
SURPLUS, TIMES = 4, 3  # own: forwards more than usual, and times the usual number
DATA, FWD, BWD, OPT = (PHASES.index(name) for name in ("Data", "Fwd", "Bwd", "Opt"))


class Unused(NamedTuple):
    """Begin and end of an evaluation, and its batches: forwards by as many as each training batch takes."""

    start_ns: int
    end_ns: int
    batches: int


def mark(marks: Spans, codes: Codes) -> tuple[Spans, tuple[Unused, ...]]:
    """`marks` with the spans of such evaluations, and these."""
    begins = np.flatnonzero((marks.kind > 0) & (marks.level == 1))
    phase = marks.effective[begins]
    usual, sections = _sections(phase)
    if not sections:
        return marks, ()
    first = np.array([begins[section[0]] for section in sections])
    last = np.array([begins[section[1]] for section in sections])
    places = np.stack((first, last), axis=1).ravel()
    at_begin = np.tile([True, False], len(sections))
    code = codes.first_phase + 2 * codes.phases.index("Eval")
    inside = np.zeros(len(marks.t_ns) + 1, dtype=np.int64)
    inside[first] += 1
    inside[last] -= 1
    inside = np.cumsum(inside[:-1]).astype(bool)
    hidden = np.where(inside & ~np.isin(marks.effective, NOT_IN_EVAL), EVAL, marks.effective)
    found = Spans(
        t_ns=np.insert(marks.t_ns, places, marks.t_ns[places]),
        code=np.insert(marks.code, places, np.where(at_begin, code, code + 1)),
        kind=np.insert(marks.kind, places, np.where(at_begin, 1, -1)),
        level=np.insert(marks.level + inside, places, np.where(at_begin, 1, 0)),
        effective=np.insert(hidden, places, np.where(at_begin, EVAL, OTHER)),
    )
    batches = [max(1, int(np.count_nonzero(phase[a:b] == FWD)) // usual) for a, b in sections]
    times = zip(marks.t_ns[first].tolist(), marks.t_ns[last].tolist(), batches, strict=True)
    return found, tuple(Unused(*each) for each in times)


def _sections(phase: np.ndarray) -> tuple[int, list[tuple[int, int]]]:
    """The usual number, and outermost spans, from the first of an evaluation to the first of the training that follows it."""
    backwards = np.flatnonzero(phase == BWD)
    forwards = np.flatnonzero(phase == FWD)
    if not len(backwards) or not len(forwards):
        return 0, []
    upto = np.searchsorted(forwards, backwards)
    counts = np.diff(upto, prepend=0)
    asked = counts[1:][counts[1:] > 0]  # in front of the first one the program may look at anything
    if len(asked) < LEAST:
        return 0, []
    usual = int(np.bincount(asked).argmax())
    if np.count_nonzero(asked == usual) < USUAL * len(asked):
        return 0, []
    found = []
    for index in np.flatnonzero((counts >= usual + SURPLUS) & (counts >= TIMES * usual)).tolist():
        if index == 0:
            continue
        of_training = int(forwards[upto[index] - usual])
        begin, end = int(forwards[upto[index - 1]]), of_training - (of_training > 0 and phase[of_training - 1] == DATA)
        begin -= begin > 0 and phase[begin - 1] == DATA
        if (phase[begin:end] == OPT).any() or begin >= end:
            continue
        found.append((begin, end))
    return usual, found
