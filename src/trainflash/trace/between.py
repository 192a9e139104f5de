"""Divides the gaps between phases where lines of the owner's belong to one of their neighbours, as traced steps have shown.

A gap after a forward and before the next one or backward is made longer or shorter by what the owner wrote there: an expression that makes
the loss is forward, a metric is not. What a method computes for the graph before it calls its first module is forward, too. A gap after
backward may hold an update without a function. Each gap is known by its place in the step (the first after a forward, the one before
backward, …); of the gaps at one place the same part is given away as in the traced steps. A gap far longer than those at its place is
judged by its own samples.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from trainflash.schema.runs import PHASES, Location
from trainflash.stacks import Stack, loop_lines
from trainflash.trace.accounting import OTHER, Spans, with_spans
from trainflash.trace.facts import Facts
from trainflash.trace.words import Codes

FWD, OPT = PHASES.index("Fwd"), PHASES.index("Opt")
LONG = 4.0  # own: times the median gap at a place
LONG_NS = 60_000_000  # own: three samples at 50 Hz
TRACED_NS = 5_000  # own: most that tracing adds to a line or call; what is longer by more was not usual
LAST = -1  # place of the gap right before backward
MOST_PLACES = 8  # later ones are one place


@dataclass(frozen=True)
class Sampled:
    """A process's samples in order of time: when each was due, its weight, the number of its place, and the index of its location or -1."""

    due_ns: np.ndarray
    weight_ns: np.ndarray
    number: np.ndarray
    place: np.ndarray
    locations: tuple[Location, ...]
    libraries: tuple[str, ...] = ()  # see `Samples`
    stack: np.ndarray | None = None
    stacks: tuple[Stack, ...] = ()


@dataclass(frozen=True)
class Divided:
    """The gaps that were divided, in order, and whose lines a sample in one of them has to be at to count for `phase`."""

    start_ns: np.ndarray
    end_ns: np.ndarray
    phase: np.ndarray
    lines: dict[int, frozenset[Location]]

    def phase_of_samples(self, t: np.ndarray, place: np.ndarray, locations: tuple[Location, ...], phase: np.ndarray) -> np.ndarray:
        """`phase` of each sample, with those inside a divided gap put where their line belongs; without a line they stay."""
        if not len(self.start_ns):
            return phase
        gap = np.searchsorted(self.start_ns, t, side="right") - 1
        inside = (gap >= 0) & (t < self.end_ns[np.maximum(gap, 0)]) & (place >= 0)
        mine = self.phase[np.maximum(gap, 0)]
        belongs = np.zeros(len(t), dtype=bool)
        for number, lines in self.lines.items():
            known = np.array([*(location in lines for location in locations), False], dtype=bool)
            belongs |= (mine == number) & known[place]
        return np.where(inside, np.where(belongs, mine, OTHER), phase)


@dataclass(frozen=True)
class _Gaps:
    """Gaps that may hold a part of `phase`: index of the event at which each begins, and its place in the step."""

    phase: int
    event: np.ndarray
    place: np.ndarray
    start: np.ndarray
    end: np.ndarray


def divide(marks: Spans, codes: Codes, facts: Facts, sampled: Sampled) -> tuple[Spans, Divided]:
    """`marks` with forwards made longer by their part of the gap behind them and with updates put in.

    Nothing changes where no step was traced.
    """
    windows = facts.all("between")
    nothing = Divided(*(np.zeros(0, dtype=np.int64) for _ in range(3)), {})
    if not windows or len(marks.t_ns) < 2:
        return marks, nothing
    windows = _without_loops(windows, facts, _loops(marks, sampled))
    lines = {
        FWD: _lines(facts, windows, "forward_lines"),
        OPT: _lines(facts, windows, "update_lines"),
    }
    behind = _after_backward(marks, codes)
    from_ns, to_ns = _parts(behind, _shares_of_update(behind, windows), sampled, lines[OPT])
    updates = to_ns > from_ns
    event = behind.event[updates]
    seen = bool((marks.code == codes["Fwd"]).any())
    beside = _after_forward(marks, codes) if seen else _before_backward(marks, codes)
    begins, ends = _parts(beside, _shares_of_forward(beside, windows), sampled, lines[FWD])
    changed = event, from_ns[updates], to_ns[updates]
    if not seen:
        return _with_forwards(marks, codes, beside, ends - begins, changed), _divided((beside, ends > begins), (behind, updates), lines)
    t = marks.t_ns.copy()
    t[beside.event] = ends  # the end of the forward
    longer = replace(marks, t_ns=t)
    ahead = _before_forward(longer, codes)
    since, until = _parts(ahead, _shares_of_forward(ahead, windows), sampled, lines[FWD])
    divided = _divided((beside, ends > begins), (ahead, until > since), (behind, updates), lines)
    return _with_forwards(longer, codes, ahead, until - since, changed), divided


def _loops(marks: Spans, sampled: Sampled) -> frozenset[Location]:
    """The owner's lines below which a library runs whole steps: what one of these took tells nothing of any phase."""
    if sampled.stack is None:
        return frozenset()
    at = np.searchsorted(marks.t_ns, sampled.due_ns, side="right") - 1
    known = np.flatnonzero((sampled.stack >= 0) & (at >= 0))
    phases = marks.effective[at[known]]
    rows = zip(sampled.stack[known].tolist(), phases.tolist(), sampled.weight_ns[known].tolist(), strict=True)
    return loop_lines((sampled.stacks[stack], PHASES[phase], weight) for stack, phase, weight in rows)


def _without_loops(windows: list[dict], facts: Facts, loops: frozenset[Location]) -> list[dict]:
    """The windows, where nothing of the owner's but such lines built a graph without its time."""
    found = []
    for window in windows:
        places = [facts.location(place) for place in window.get("forward_lines", [])]
        alone = bool(places) and all(place in loops for place in places)
        none = {"forward": [], "forward_lines": [], "rest": [*window.get("forward", []), *window.get("rest", [])]}
        found.append({**window, **none} if alone else window)
    return found


def _with_forwards(
    marks: Spans, codes: Codes, ahead: _Gaps, length: np.ndarray, updates: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> Spans:
    """The updates, and a forward of that `length` at the end of each gap that is `ahead` of a forward or backward."""
    event, from_ns, to_ns = updates
    updated = np.zeros(len(marks.t_ns), dtype=np.int64)
    updated[event] = to_ns
    since = np.maximum(ahead.end - length, updated[ahead.event])
    given = (length > 0) & (ahead.end > since)
    count = int(given.sum())
    at, begins, ends = (np.concatenate(pair) for pair in ((event, ahead.event[given]), (from_ns, since[given]), (to_ns, ahead.end[given])))
    code, phase = (np.repeat(pair, (len(event), count)) for pair in ((codes["Opt"], codes["Fwd"]), (OPT, FWD)))
    order = np.lexsort((begins, at))
    return with_spans(marks, at[order], code[order], phase[order], begins[order], ends[order])


def forward_lines(facts: Facts) -> frozenset[Location]:
    """The owner's lines outside the phases that were seen to make a part of the graph."""
    return _lines(facts, facts.all("between"), "forward_lines")


def _lines(facts: Facts, windows: list[dict], name: str) -> frozenset[Location]:
    found = (facts.location(place) for window in windows for place in window.get(name, []))
    return frozenset(place for place in found if place is not None)


def _gaps(marks: Spans) -> tuple[np.ndarray, np.ndarray]:
    """Indices of events that begin a gap in no phase and outside of all spans, and the event that ends each."""
    index = np.flatnonzero((marks.effective[:-1] == OTHER) & (marks.level[:-1] == 0) & (np.diff(marks.t_ns) > 0))
    return index, index + 1


def _after_forward(marks: Spans, codes: Codes) -> _Gaps:
    index, following = _gaps(marks)
    begin, end, backward = codes["Fwd"], codes["Fwd"] + 1, codes["Bwd"]
    chosen = (marks.code[index] == end) & np.isin(marks.code[following], (begin, backward))
    index, following = index[chosen], following[chosen]
    outer = (marks.level == 1) & (marks.kind > 0)
    number = np.cumsum(outer & (marks.code == begin))
    before = np.maximum.accumulate(np.where(outer & (marks.code != begin) | (marks.code == codes["step"]), number, 0))
    place = np.minimum((number - before)[index], MOST_PLACES)
    place = np.where(marks.code[following] == backward, LAST, place)
    return _Gaps(FWD, index, place, marks.t_ns[index], marks.t_ns[following])


def _after_backward(marks: Spans, codes: Codes) -> _Gaps:
    index, following = _gaps(marks)
    chosen = marks.code[index] == codes["Bwd"] + 1
    index, following = index[chosen], following[chosen]
    return _Gaps(OPT, index, np.zeros(len(index), dtype=np.int64), marks.t_ns[index], marks.t_ns[following])


def _before_forward(marks: Spans, codes: Codes) -> _Gaps:
    """Gaps in front of a forward, behind no other one and behind no backward: a method may compute before it calls its first module."""
    index, following = _gaps(marks)
    chosen = (marks.code[following] == codes["Fwd"]) & ~np.isin(marks.code[index], (codes["Fwd"] + 1, codes["Bwd"] + 1))
    index, following = index[chosen], following[chosen]
    return _Gaps(FWD, index, np.zeros(len(index), dtype=np.int64), marks.t_ns[index], marks.t_ns[following])


def _before_backward(marks: Spans, codes: Codes) -> _Gaps:
    """Gaps that end where a backward begins, also where that is what begins the step."""
    index, following = _gaps(marks)
    code = np.append(marks.code, -1)
    begins = (code[following] == codes["step"]) & (code[np.minimum(following + 1, len(code) - 1)] == codes["Bwd"])
    chosen = begins | (code[following] == codes["Bwd"])
    index, following = index[chosen], following[chosen]
    return _Gaps(FWD, index, np.full(len(index), LAST), marks.t_ns[index], marks.t_ns[following])


def _shares_of_forward(gaps: _Gaps, windows: list[dict]) -> dict[int, tuple[float, float]]:
    """For each place (from, to) in parts of the gap: what lines of the graph took of all lines there."""
    found: dict[int, list[np.ndarray]] = defaultdict(list)
    for window in windows:
        graph, rest = window.get("forward", []), window.get("rest", [])
        spans = [*graph, *rest]
        if spans:
            for gap, _ in _overlaps(gaps, min(span[0] for span in spans), max(span[1] for span in spans)):
                found[int(gaps.place[gap])].append(np.array([_spent(part, gaps.start[gap], gaps.end[gap]) for part in (graph, rest)]))
    took = {place: _untraced(parts, gaps, place) for place, parts in found.items()}
    return {place: (0.0, float(graph / (graph + rest))) for place, (graph, rest) in took.items() if graph + rest > 0}


def _shares_of_update(gaps: _Gaps, windows: list[dict]) -> dict[int, tuple[float, float]]:
    """(from, to) in parts of the gap: what the lines before the update took of all lines there, and those up to its end."""
    found = []
    for window in windows:
        if window.get("update"):
            began, ended = window["update"]
            for gap, inside in _overlaps(gaps, began, ended):
                if inside > 0.5 * (ended - began):
                    parts = ((gaps.start[gap], began), (began, ended), (ended, gaps.end[gap]))
                    found.append(np.array([_spent([*window.get("forward", []), *window.get("rest", [])], *part) for part in parts]))
    if not found:
        return {}
    before, update, after = _untraced(found, gaps, 0)
    whole = before + update + after
    return {0: (float(before / whole), float((before + update) / whole))} if whole > 0 else {}


def _spent(spans: list, start: int, end: int) -> tuple[float, float]:
    """Nanoseconds of the lines from `start` to `end`, and how many lines and Python calls these are."""
    parts = [(max(0, min(ended, end) - max(began, start)) / max(ended - began, 1), took, calls) for began, ended, took, calls in spans]
    return float(sum(part * took for part, took, _ in parts)), float(sum(part * calls for part, _, calls in parts))


def _untraced(found: list[np.ndarray], gaps: _Gaps, place: int) -> np.ndarray:
    """Nanoseconds of each part of a gap at `place`, as in the traced step that it took least in: who takes the core meanwhile can but add.

    Where all of them are longer than a usual gap there, tracing has slowed them, by as much for each call and line.
    """
    took, calls = np.min(np.array(found), axis=0).T
    usual = float(np.median((gaps.end - gaps.start)[gaps.place == place]))
    slowed = max(0.0, took.sum() - usual) / max(calls.sum(), 1.0)
    return np.maximum(took - min(slowed, TRACED_NS) * calls, 0.0)


def _overlaps(gaps: _Gaps, began: int, ended: int) -> list[tuple[int, float]]:
    first = int(np.searchsorted(gaps.end, began, side="right"))
    last = int(np.searchsorted(gaps.start, ended, side="left"))
    return [(gap, float(min(gaps.end[gap], ended) - max(gaps.start[gap], began))) for gap in range(first, last)]


def _parts(
    gaps: _Gaps,
    shares: dict[int, tuple[float, float]],
    sampled: Sampled,
    lines: frozenset[Location],
) -> tuple[np.ndarray, np.ndarray]:
    """From when to when each gap belongs to the phase; an empty part where it does not."""
    begins, ends = gaps.start.copy(), gaps.start.copy()
    length = gaps.end - gaps.start
    for place, (low, high) in shares.items():
        here = gaps.place == place
        if not here.any():
            continue
        usual = LONG * float(np.median(length[here]))
        long = here & (length > max(usual, LONG_NS))
        begins[here] = gaps.start[here] + (low * length[here]).astype(np.int64)
        ends[here] = gaps.start[here] + (high * length[here]).astype(np.int64)
        if long.any():
            part = _sampled_part(gaps, long, sampled, lines)
            most = (high - low) * (np.full(int(long.sum()), usual) if part is None else part / max(high - low, 1e-9) * length[long])
            begins[long] = gaps.start[long]
            ends[long] = gaps.start[long] + most.astype(np.int64)
    return begins, np.minimum(ends, gaps.end)


def _sampled_part(gaps: _Gaps, chosen: np.ndarray, sampled: Sampled, lines: frozenset[Location]) -> float | None:
    t, weight, place, locations = sampled.due_ns, sampled.weight_ns, sampled.place, sampled.locations
    inside = total = 0
    for start, end in zip(gaps.start[chosen], gaps.end[chosen], strict=True):
        for index in range(int(np.searchsorted(t, start)), int(np.searchsorted(t, end))):
            total += int(weight[index])
            inside += int(weight[index]) if place[index] >= 0 and locations[place[index]] in lines else 0
    return inside / total if total else None


def _divided(*parts_and_lines) -> Divided:
    *parts, lines = parts_and_lines
    start = np.concatenate([gaps.start[given] for gaps, given in parts])
    end = np.concatenate([gaps.end[given] for gaps, given in parts])
    phase = np.concatenate([np.full(int(given.sum()), gaps.phase) for gaps, given in parts])
    order = np.argsort(start, kind="stable")
    return Divided(start[order], end[order], phase[order], lines)
