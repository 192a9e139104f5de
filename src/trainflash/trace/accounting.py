"""Nested spans → exclusive time. Vectorised: the loop runs over nesting levels, not over events."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainflash.schema.runs import PHASES
from trainflash.trace.model import Occurrences
from trainflash.trace.words import Codes, Words

OTHER = PHASES.index("Other")
EVAL = PHASES.index("Eval")
CALL_NS = 50_000  # measured: into and out of a hooked call with cold caches, old tensors freed on return: 2 to 50 µs
CALL_PART = 400  # and no more than this part of a step, so that all calls of a step together hide no work worth a name
NOT_IN_EVAL = (PHASES.index("Ckpt"), PHASES.index("Log"))  # what is taken out of an evaluation; all else inside it is Eval


@dataclass(frozen=True)
class Spans:
    """Begin and end marks of one process in order of time.

    `kind` is +1 for a begin, -1 for an end, 0 for another event (a boundary); `level` the depth after the event; `effective` the phase that
    the time from this event to the next one counts for.
    """

    t_ns: np.ndarray
    code: np.ndarray
    kind: np.ndarray
    level: np.ndarray
    effective: np.ndarray


def spans(words: Words, codes: Codes) -> Spans:
    """The spans of one process, without samples and fetch marks; marks that do not nest are repaired."""
    first, count = codes.first_phase, len(codes.phases)
    by_loader = (words.code >= codes["data_of"]) & (words.code < codes["sample_of"])
    in_phase = (words.code >= first) & (words.code < first + 2 * count)
    boundary = words.code == codes["step"]
    keep = by_loader | in_phase | boundary
    t, code = words.t_ns[keep], words.code[keep]
    in_phase, by_loader = in_phase[keep], by_loader[keep]
    kind = np.where(by_loader, 1, np.where(in_phase, 1 - 2 * ((code - first) % 2), 0)).astype(np.int64)
    names = [PHASES.index(name) if name in PHASES else OTHER for name in codes.phases]
    table = np.array([*names, PHASES.index("Data"), OTHER], dtype=np.int64)
    phase = table[np.where(by_loader, count, np.where(in_phase, (code - first) // 2, count + 1))]
    level = np.cumsum(kind)
    if not _nested(kind, level, phase):
        ok = _repair(kind, phase)
        t, code, kind, phase = t[ok], code[ok], kind[ok], phase[ok]
        level = np.cumsum(kind)
    return Spans(t, code, kind, level, _effective(kind, level, phase))


def _open_at(level: np.ndarray, kind: np.ndarray, depth: int) -> np.ndarray:
    """Index of the newest begin at `depth`, for each event; -1 before the first."""
    begins = (kind > 0) & (level == depth)
    return np.maximum.accumulate(np.where(begins, np.arange(len(kind)), -1)) if len(kind) else np.zeros(0, dtype=np.int64)


def _nested(kind: np.ndarray, level: np.ndarray, phase: np.ndarray) -> bool:
    if len(level) and level.min() < 0:
        return False
    for depth in range(1, int(level.max(initial=0)) + 1):
        ends = np.flatnonzero((kind < 0) & (level == depth - 1))
        opened = _open_at(level, kind, depth)[ends]
        if np.any(opened < 0) or np.any(phase[opened] != phase[ends]):
            return False
    return True


def _repair(kind: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Which marks to keep: an end without its begin goes, and so does a begin whose end another one overtook."""
    keep = np.ones(len(kind), dtype=bool)
    stack: list[int] = []
    for index, (sign, name) in enumerate(zip(kind.tolist(), phase.tolist(), strict=True)):
        if sign > 0:
            stack.append(index)
        elif sign < 0:
            while stack and phase[stack[-1]] != name and any(phase[below] == name for below in stack):
                keep[stack.pop()] = False
            if stack and phase[stack[-1]] == name:
                stack.pop()
            else:
                keep[index] = False
    return keep


def _effective(kind: np.ndarray, level: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Phase of the interval after each event: the innermost open span, but inside Eval only Ckpt and Log stand out."""
    current = np.full(len(kind), OTHER, dtype=np.int64)
    in_eval = np.zeros(len(kind), dtype=bool)
    for depth in range(1, int(level.max(initial=0)) + 1):
        opened = _open_at(level, kind, depth)
        inside = level >= depth
        here = phase[np.maximum(opened, 0)]
        counts = inside & (~in_eval | np.isin(here, NOT_IN_EVAL))
        current = np.where(counts, here, current)
        in_eval |= inside & (here == EVAL)
    return current


def with_spans(
    marks: Spans, event: np.ndarray, code: np.ndarray | int, phase: np.ndarray | int, begins: np.ndarray, ends: np.ndarray
) -> Spans:
    """`marks` with a span, in order of time, behind each `event`, after which no phase goes on; `code` is that of its begin."""
    if not len(event):
        return marks
    at = np.repeat(event + 1, 2)
    level, codes, phases = (np.repeat(np.broadcast_to(each, len(event)), 2) for each in (marks.level[event], code, phase))
    kind = np.tile(np.array([1, -1]), len(event))
    return Spans(
        t_ns=np.insert(marks.t_ns, at, np.stack((begins, ends), axis=1).ravel()),
        code=np.insert(marks.code, at, codes + (kind < 0)),
        kind=np.insert(marks.kind, at, kind),
        level=np.insert(marks.level, at, level + (kind > 0)),
        effective=np.insert(marks.effective, at, np.where(kind > 0, phases, OTHER)),
    )


def with_calls(marks: Spans, codes: Codes) -> Spans:
    """The way into and out of a call belongs to it: what follows a span and is shorter than any work counts for that span's phase."""
    ends = marks.t_ns[marks.code == codes["step"]]
    if len(ends) < 2:
        return marks
    short = min(CALL_NS, float(np.median(np.diff(ends))) / CALL_PART)
    gap = (marks.effective == OTHER) & (np.diff(marks.t_ns, append=marks.t_ns[-1:]) < short)
    gap[:1] = False
    before = np.concatenate(([OTHER], marks.effective[:-1]))
    return replace(marks, effective=np.where(gap, before, marks.effective))


@dataclass(frozen=True)
class Steps:
    """`start_ns` has n+1 entries; `phase_ns[p, i]` is the exclusive time of phase p in step i."""

    start_ns: np.ndarray
    phase_ns: np.ndarray


def steps(marks: Spans, codes: Codes, completed: int) -> Steps:
    """Steps of one process. A step whose last update is done (`completed` of the file's head counts it) counts even if its boundary never
    came: it ends with the last event. A part of a step does not count.
    """
    ends = marks.t_ns[marks.code == codes["step"]]
    if completed > len(ends) and len(marks.t_ns):
        ends = np.append(ends, marks.t_ns[-1])
    if not len(ends):
        return Steps(np.zeros(0, dtype=np.int64), np.zeros((len(PHASES), 0), dtype=np.int64))
    start = np.concatenate((marks.t_ns[:1], ends))
    length = np.diff(marks.t_ns)
    step = np.searchsorted(start, marks.t_ns[:-1], side="right") - 1
    inside = (step < len(ends)) & (length > 0)
    cell = marks.effective[:-1][inside] * len(ends) + step[inside]
    total = np.bincount(cell, weights=length[inside], minlength=len(PHASES) * len(ends))
    return Steps(start, total.astype(np.int64).reshape(len(PHASES), len(ends)))


def occurrences(marks: Spans, step_start: np.ndarray) -> dict[str, Occurrences]:
    """All spans of each phase that count for it, outermost ones only."""
    begin, end = _pairs(marks)
    t_end = np.where(end < len(marks.t_ns), marks.t_ns[np.minimum(end, len(marks.t_ns) - 1)], marks.t_ns[-1] if len(marks.t_ns) else 0)
    length = np.diff(marks.t_ns, append=marks.t_ns[-1:])
    before = np.concatenate(([OTHER], marks.effective[:-1])) if len(marks.t_ns) else marks.effective
    opened, around = marks.effective[begin], before[begin]
    found = {}
    for index, name in enumerate(PHASES):
        if index == OTHER:
            continue
        mine = np.flatnonzero((opened == index) & (around != index))
        spent = np.concatenate(([0], np.cumsum(length * (marks.effective == index)))) if len(mine) else np.zeros(1, dtype=np.int64)
        exclusive = spent[np.minimum(end[mine], len(spent) - 1)] - spent[begin[mine]]
        t_begin = marks.t_ns[begin[mine]]
        found[name] = Occurrences(t_begin, t_end[mine], exclusive, step_of(t_begin, step_start))
    return found


def _pairs(marks: Spans) -> tuple[np.ndarray, np.ndarray]:
    """Indices of begin and end of each span, by begin; an end past the last event means that the span is still open."""
    begins, ends = [], []
    for depth in range(1, int(marks.level.max(initial=0)) + 1):
        opened = np.flatnonzero((marks.kind > 0) & (marks.level == depth))
        closed = np.flatnonzero((marks.kind < 0) & (marks.level == depth - 1))
        begins.append(opened)
        ends.append(np.concatenate((closed, np.full(len(opened) - len(closed), len(marks.kind), dtype=np.int64))))
    if not begins:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    begin, end = np.concatenate(begins), np.concatenate(ends)
    order = np.argsort(begin, kind="stable")
    return begin[order], end[order]


def step_of(t_ns: np.ndarray, step_start: np.ndarray) -> np.ndarray:
    """Index of the step in which each time lies: -1 before the first, the number of steps after the last."""
    return np.searchsorted(step_start, t_ns, side="right") - 1 if len(step_start) else np.full(len(t_ns), -1, dtype=np.int64)
