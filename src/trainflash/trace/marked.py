"""Phase events that another program recorded (phase, start or end, time, step, rank) → the same `Trace` as the probe's files give.

A file of events is a row of `LAYOUT` records in the order in which they arrived. Nothing about that order, or about ends for starts, is
trusted: events are sorted by time, paired, made to nest, and what did not fit is counted.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trainflash.schema.runs import PHASES
from trainflash.trace.accounting import Spans, occurrences, spans, steps, with_calls
from trainflash.trace.model import EvalTrace, LogTrace, RankTrace, Samples, SaveTrace, Trace
from trainflash.trace.words import Codes, Words

LAYOUT = struct.Struct("<qiHBB")  # nanoseconds, step (-1: not told), rank, index of the phase, 1 for a start
NO_STEP = -1
MARKS = tuple(name for name in PHASES if name != "Other")
GAP_NS = 24 * 3600 * 10**9  # no training is silent for a day: what lies apart from the rest has another clock, or a wrong time
CLOSING = ("Opt", "Bwd", "Fwd")  # without step numbers a step is over after the first of these that occurs
OPENING = frozenset(MARKS.index(name) for name in ("Data", "H2D", "Fwd"))

_STEP, _FIRST = 1, 16
_CODES = Codes({"step": _STEP, "data_of": 256, "iter_of": 512, "sample_of": 1024, PHASES[0]: _FIRST}, PHASES)
_RECORD = np.dtype([("t_ns", "<i8"), ("step", "<i4"), ("rank", "<u2"), ("phase", "u1"), ("start", "u1")])
_EVAL = MARKS.index("Eval")


@dataclass(frozen=True)
class Faults:
    """What did not fit, by phase where it says so; `late`: came after one with a later time; `far`: apart by more than a day."""

    never_ended: dict[str, int] = field(default_factory=dict)
    never_started: dict[str, int] = field(default_factory=dict)
    overlapping: int = 0
    late: int = 0
    far: int = 0


@dataclass(frozen=True)
class Marked:
    """`trace`: None where no rank completed a step; `durations_ms`: every pair of start and end, by phase."""

    trace: Trace | None
    events: int
    ranks: tuple[int, ...]
    faults: Faults
    durations_ms: dict[str, np.ndarray]
    from_ns: int | None = None
    to_ns: int | None = None


@dataclass(frozen=True)
class _Rank:
    """One rank's events in order of time; `first` and `last` are indices of paired starts and ends, by start."""

    t_ns: np.ndarray
    step: np.ndarray
    phase: np.ndarray
    first: list[int]
    last: list[int]


def load(path: Path, *, label: str, device: str) -> Marked:
    """All events in `path`; none of it where there is no file. A record that was cut off at the end is left out."""
    try:
        records = np.fromfile(path, dtype=_RECORD, count=path.stat().st_size // _RECORD.itemsize)
    except OSError:
        records = np.zeros(0, dtype=_RECORD)
    kept, far = _one_clock(records)
    faults = {"never_ended": {}, "never_started": {}, "overlapping": 0, "late": 0, "far": far}
    durations: dict[str, list[np.ndarray]] = {}
    numbers = tuple(int(number) for number in np.unique(kept["rank"]))
    ranks = []
    for number in numbers:
        mine = _paired(kept[kept["rank"] == number], faults)
        lengths = (mine.t_ns[mine.last] - mine.t_ns[mine.first]) / 1e6
        of = mine.phase[mine.first]
        for index in np.unique(of):
            durations.setdefault(MARKS[index], []).append(lengths[of == index])
        made = _rank(mine, number, len(numbers), label, device, faults)
        if made.steps:
            ranks.append(made)
    return Marked(
        trace=Trace(run_dir=str(path.parent), ranks=tuple(ranks)) if ranks else None,
        events=len(records),
        ranks=numbers,
        faults=Faults(**faults),
        durations_ms={name: np.concatenate(durations[name]) for name in MARKS if name in durations},
        from_ns=int(kept["t_ns"].min()) if len(kept) else None,
        to_ns=int(kept["t_ns"].max()) if len(kept) else None,
    )


def _one_clock(records: np.ndarray) -> tuple[np.ndarray, int]:
    """The largest group of events that no silence of a day divides, and how many lie outside of it."""
    order = np.argsort(records["t_ns"], kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(records["t_ns"][order]) > GAP_NS) + 1)
    largest = max(parts, key=len)
    return records[np.sort(largest)], len(records) - len(largest)


def _paired(records: np.ndarray, faults: dict) -> _Rank:
    """Starts and ends of each phase, the newest open start first; those that belong to different steps are no pair."""
    times = records["t_ns"]
    faults["late"] += int(np.count_nonzero(times < np.maximum.accumulate(times))) if len(times) else 0
    records = records[np.argsort(times, kind="stable")]
    waiting: list[list[int]] = [[] for _ in MARKS]
    pairs = []
    step = records["step"].tolist()
    for index, (phase, start) in enumerate(zip(records["phase"].tolist(), records["start"].tolist(), strict=True)):
        if start:
            waiting[phase].append(index)
        elif waiting[phase] and _near(step[waiting[phase][-1]], step[index]):
            pairs.append((waiting[phase].pop(), index))
        else:
            _count(faults["never_started"], MARKS[phase])
    for phase, left in enumerate(waiting):
        if left:
            _count(faults["never_ended"], MARKS[phase], len(left))
    pairs.sort()
    return _Rank(
        records["t_ns"].astype(np.int64), records["step"], records["phase"], [first for first, _ in pairs], [last for _, last in pairs]
    )


def _near(one: int, other: int) -> bool:
    """A program may count on before it says that the step's last phase has ended."""
    return NO_STEP in (one, other) or abs(one - other) <= 1


def _count(counts: dict[str, int], name: str, more: int = 1) -> None:
    counts[name] = counts.get(name, 0) + more


def _rank(mine: _Rank, number: int, world_size: int, label: str, device: str, faults: dict) -> RankTrace:
    marks = _nested(mine, faults)
    boundaries, complete = _boundaries(mine)
    times = np.concatenate((marks[0], mine.t_ns[boundaries]))
    codes = np.concatenate((marks[1], np.full(len(boundaries), _STEP, dtype=np.int64)))
    before = np.concatenate((marks[2], 2 * np.asarray(boundaries, dtype=np.int64) - 1))
    order = np.lexsort((before, times))
    none = np.full(len(times), -1, dtype=np.int64)
    words = Words(times[order], codes[order], none, len(boundaries) + complete, 0, none)
    seen = with_calls(spans(words, _CODES), _CODES)
    found = steps(seen, _CODES, words.steps)
    spent = occurrences(seen, found.start_ns)
    nothing = np.zeros(0, dtype=np.int64)
    return RankTrace(
        pid=number,
        rank=number,
        world_size=world_size,
        argv=(label,),
        process_start_ns=int(mine.t_ns[0]),
        end_ns=int(mine.t_ns[-1]),
        step_start_ns=found.start_ns,
        phase_ns={name: found.phase_ns[index] for index, name in enumerate(PHASES)},
        occurrences=spent,
        samples=Samples(nothing, nothing, nothing, nothing, nothing, ()),
        device=device,
        epochs=None,
        epoch_at_ns=nothing,
        evaluations=_evaluations(mine, seen, spent),
        saves=tuple(SaveTrace(start, end - start, None, None) for start, end in _times(spent["Ckpt"])),
        logs=_logs(spent["Log"]),
    )


def _nested(mine: _Rank, faults: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, codes and order of marks that nest: of two spans that overlap the one that began first ends where the other begins."""
    out: list[tuple[int, int, int]] = []
    times, phases = mine.t_ns.tolist(), mine.phase.tolist()
    open_: list[tuple[int, int]] = []

    def end(at: int, key: int) -> None:
        first, _ = open_.pop()
        out.append((times[at], _FIRST + 2 * phases[first] + 1, key))

    for first, last in zip(mine.first, mine.last, strict=True):
        while open_ and open_[-1][1] < first:
            end(open_[-1][1], 2 * open_[-1][1])
        while open_ and open_[-1][1] < last:
            faults["overlapping"] += 1
            end(first, 2 * first - 1)
        out.append((times[first], _FIRST + 2 * phases[first], 2 * first))
        open_.append((first, last))
    while open_:
        end(open_[-1][1], 2 * open_[-1][1])
    table = np.array(out, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _boundaries(mine: _Rank) -> tuple[list[int], bool]:
    """Indices of the events that begin the second and each later step, and whether the last step is complete."""
    phase, step = mine.phase.tolist(), mine.step.tolist()
    ends = {last: first for first, last in zip(mine.first, mine.last, strict=True)}
    starts = set(mine.first)
    occurring = {phase[first] for first in mine.first}
    closing = next((MARKS.index(name) for name in CLOSING if MARKS.index(name) in occurring), None)
    if closing is None:
        return [], False
    numbered = any(number != NO_STEP for number in step)
    found: list[int] = []
    evaluating, closed, current = 0, False, NO_STEP
    for index, (name, number) in enumerate(zip(phase, step, strict=True)):
        begins = closed and not evaluating and index in starts and name in OPENING
        if numbered:
            begins = number != NO_STEP and current != NO_STEP and (number > current or number < current - 1)
            current = number if begins or current == NO_STEP else current
        if begins:
            found.append(index)
            closed = False
        if name == _EVAL:
            evaluating += (index in starts) - (index in ends)
        closed = closed or (name == closing and index in ends and not evaluating)
    return found, closed


def _evaluations(mine: _Rank, seen: Spans, spent: dict) -> tuple[EvalTrace, ...]:
    forwards = mine.t_ns[[first for first in mine.first if MARKS[mine.phase[first]] == "Fwd"]]
    found = []
    for start, end in _times(spent["Eval"]):
        inside = int(np.searchsorted(forwards, end) - np.searchsorted(forwards, start))
        found.append(EvalTrace(start, None, inside, None, None))
    return tuple(found)


def _times(spans_of: object) -> Sequence[tuple[int, int]]:
    return list(zip(spans_of.start_ns.tolist(), spans_of.end_ns.tolist(), strict=True))


def _logs(spans_of: object) -> tuple[LogTrace, ...]:
    count = len(spans_of.start_ns)
    return (LogTrace(None, "marks", count, int(spans_of.exclusive_ns.sum())),) if count else ()
