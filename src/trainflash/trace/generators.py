"""Gives Data the work of generators that ran already when the probe found that they make the batches: no bracket is around that.

Samples of lines say which of them were taken below such a generator. In a gap between spans the part that they are of all samples there is
Data, put at the gap's end, where the batch is used. Gaps that begin alike are judged together: one holds less than a sample. A long gap, a
refill of a buffer say, is judged by its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainflash.schema.runs import PHASES
from trainflash.trace.accounting import OTHER, Spans, with_spans
from trainflash.trace.facts import Facts
from trainflash.trace.words import Codes

DATA = PHASES.index("Data")
OF_ITS_OWN = 3  # samples in a gap, from which on it is judged alone; own
LEAST = 3  # samples below a generator, in gaps that begin alike, to say anything of them; own


@dataclass(frozen=True)
class Generated:
    """The gaps that hold work of generators, in order of time, and which samples, all of the process's, are of such work."""

    start_ns: np.ndarray
    end_ns: np.ndarray
    made: np.ndarray

    def phase_of_samples(self, t: np.ndarray, phase: np.ndarray) -> np.ndarray:
        """`phase` of each sample, with those in these gaps put where they belong, whatever part of the gap they were taken in."""
        if not len(self.start_ns):
            return phase
        gap = np.searchsorted(self.start_ns, t, side="right") - 1
        inside = (gap >= 0) & (t < self.end_ns[np.maximum(gap, 0)]) & np.isin(phase, (DATA, OTHER))
        return np.where(inside, np.where(self.made, DATA, OTHER), phase)


def prolong(marks: Spans, codes: Codes, facts: Facts, t: np.ndarray, number: np.ndarray) -> tuple[Spans, Generated]:
    """`marks` with spans of Data put in, or made longer, where samples say that a generator worked; unchanged without such samples.

    `t`: when the samples were due, in ns, in order; `number`: of their places.
    """
    newest = {int(fact["id"]): bool(fact.get("makes")) for fact in facts.all("place")}
    made = np.isin(number, [each for each, makes in newest.items() if makes])
    nothing = Generated(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), made)
    if made.sum() < LEAST or len(marks.t_ns) < 2:
        return marks, nothing
    event = np.flatnonzero((marks.effective[:-1] == OTHER) & (marks.level[:-1] == 0) & (np.diff(marks.t_ns) > 0))
    part = _parts(marks, event, t, made)
    event, part = event[part > 0], part[part > 0]
    start, end = marks.t_ns[event], marks.t_ns[event + 1]
    return _with_spans(marks, codes, event, end - (part * (end - start)).astype(np.int64)), Generated(start, end, made)


def _parts(marks: Spans, event: np.ndarray, t: np.ndarray, made: np.ndarray) -> np.ndarray:
    """The part of each gap that is a generator's."""
    first, last = np.searchsorted(t, marks.t_ns[event]), np.searchsorted(t, marks.t_ns[event + 1])
    before = np.concatenate(([0], np.cumsum(made)))
    count, of_them = last - first, before[last] - before[first]
    alone = count >= OF_ITS_OWN
    part = np.where(alone, of_them / np.maximum(count, 1), 0.0)
    for code in np.unique(marks.code[event]):
        alike = ~alone & (marks.code[event] == code)
        if of_them[alike].sum() >= LEAST:
            part[alike] = of_them[alike].sum() / count[alike].sum()
    return part


def _with_spans(marks: Spans, codes: Codes, event: np.ndarray, begins: np.ndarray) -> Spans:
    """Spans of Data from `begins` to the end of the gap behind each event; a span of Data that follows begins earlier instead."""
    follows = (marks.kind[event + 1] > 0) & (marks.effective[event + 1] == DATA)
    t = marks.t_ns.copy()
    t[event[follows] + 1] = begins[follows]
    event, begins = event[~follows], begins[~follows]
    return with_spans(replace(marks, t_ns=t), event, codes["Data"], DATA, begins, marks.t_ns[event + 1])
