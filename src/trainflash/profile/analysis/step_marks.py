"""Where the steps of one rank begin and end, by the best marks that it has.

A step lasts until the next mark. The last one, and one behind which marks are missing, lasts until the device has done what was launched
in it. Where the host runs ahead of the device its marks tell nothing of the time of a step: then steps are cut where the device ends
what each of them launched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.tallies import summed
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.view import Rank
from trainflash.profile.events import Kind
from trainflash.schema.profile_times import Basis

_NUMBER = re.compile(r"[\s#:_]*\d+\s*$")


@dataclass(frozen=True)
class RankSteps:
    """Steps of one rank, in order: number, begin, end. `notes`: what speaks against them."""

    number: np.ndarray
    start: np.ndarray
    end: np.ndarray
    basis: Basis
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.number)

    @property
    def duration(self) -> np.ndarray:
        return self.end - self.start


def steps_of(rank: Rank, limits: Thresholds = DEFAULT) -> RankSteps:
    """The steps of one rank."""
    found = _marked(rank, limits) or _by_optimizer(rank) or _on_device(rank) or _by_calls(rank, limits)
    none = np.empty(0, np.int64)
    return found or RankSteps(none, none, none, "none")


@dataclass(frozen=True)
class _Marks:
    """The host's marks of one kind of step. `follows`: where the next mark of any kind begins, past all events behind the last one."""

    number: np.ndarray
    start: np.ndarray
    end: np.ndarray
    follows: np.ndarray
    whole: np.ndarray  # whether the step that follows is the next by number
    among: tuple[str, ...]  # marks of other kinds that stand between them

    def without_last(self) -> _Marks:
        """All but the last step."""
        columns = {name: getattr(self, name)[:-1] for name in ("number", "start", "end", "follows", "whole")}
        return _Marks(**columns, among=self.among)

    @property
    def until(self) -> np.ndarray:
        """The end of each step on the host."""
        return np.where(self.whole, self.follows, self.end)


def _marked(rank: Rank, limits: Thresholds) -> RankSteps | None:
    marks = _marks(rank)
    if marks is None:
        return None
    notes = []
    if _ends_with_a_stop(rank, marks, limits):
        marks = marks.without_last()
        notes.append("the last mark holds no work: the profiler stops there, it is no step")
    missing = int((~marks.whole[:-1]).sum())
    if missing:
        notes.append(f"step marks are missing in {missing} places: the steps before them last until their own work ends")
    if marks.among:
        notes.append(f"other marks stand among those of the steps ({', '.join(marks.among)}): the window holds their time too")
    end = _with_own_work(rank, marks)
    usual = float(np.median(end - marks.start))
    cut = _cut_by_device(rank, marks, limits.ahead * usual)
    if cut is not None:
        notes.append("the host runs ahead of the device: a step is what the device takes for the work launched in it")
        return RankSteps(marks.number, *cut, "step_markers", tuple(notes))
    beyond = int(rank.device.end.max(initial=0)) - int(end[-1])
    if beyond > usual and not rank.device.by_call.any():
        on_device = _on_device(rank)
        if on_device is not None:
            return on_device
        notes.append("the device works on for longer than a step after the last mark: other work, or a host that runs ahead of it")
    return RankSteps(marks.number, marks.start, end, "step_markers", tuple(notes))


def _ends_with_a_stop(rank: Rank, marks: _Marks, limits: Thresholds) -> bool:
    """Whether the last mark is short beside the others and nothing is launched in it."""
    if len(marks.start) < 2:
        return False
    last, usual = int(marks.end[-1] - marks.start[-1]), float(np.median((marks.end - marks.start)[:-1]))
    if last > limits.stop_share * usual:
        return False
    device = rank.device
    begun = np.where(device.by_call, device.launch_ns, device.start)
    return not bool(((begun >= marks.start[-1]) & (begun < marks.end[-1])).any())


def _marks(rank: Rank) -> _Marks | None:
    """The marks that stand most often, of one kind and on one thread; those of evaluations only where there are no others."""
    column = rank.trace.column("step")
    rows = column.rows.astype(np.int64)
    kind = rank.trace.events.kind[rows]
    rows = rows[rank.timed[rows] & np.isin(kind, np.asarray([Kind.ANNOTATION, Kind.HOST_OP], np.int8))]
    if not len(rows):
        return None
    stems, of = _stems(rank, rows)
    groups, which, count = np.unique(np.stack((of, rank.trace.events.track[rows])), axis=1, return_inverse=True, return_counts=True)
    which = which.ravel()
    order = [
        (words.is_evaluation(stems[stem]), -times, track, stem)
        for (stem, track), times in zip(groups.T.tolist(), count.tolist(), strict=True)
    ]
    chosen = min(range(len(order)), key=order.__getitem__)
    mine = _once(rank, rows[which == chosen], column)
    number, start, end = column.take(mine, -1), rank.start[mine], rank.end[mine]
    if len(np.unique(number)) < len(number):  # counted anew in each epoch
        number = number[0] + np.arange(len(number))
    others = rows[(which != chosen) & (groups[1][which] == groups[1][chosen])]
    among = np.unique(of[np.isin(rows, others[(rank.start[others] > start[0]) & (rank.start[others] < start[-1])])])
    return _Marks(number, start, end, _follows(start, end, np.sort(rank.start[others])), _whole(number), tuple(stems[one] for one in among))


def _stems(rank: Rank, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """(names of marks without their numbers, which of them each row has)."""
    codes, which = np.unique(rank.trace.events.name[rows], return_inverse=True)
    bare = [_NUMBER.sub("", rank.trace.strings[code]) for code in codes.tolist()]
    number = {stem: place for place, stem in enumerate(sorted(set(bare)))}
    return list(number), np.asarray([number[stem] for stem in bare], np.int64)[which]


def _once(rank: Rank, rows: np.ndarray, column) -> np.ndarray:
    """Marks by time; one that stands a second time inside the first is no step."""
    rows = rows[np.argsort(rank.start[rows], kind="stable")]
    number = column.take(rows, -1)
    again = np.zeros(len(rows), bool)
    reach: dict[int, int] = {}
    for place, (row, one) in enumerate(zip(rows.tolist(), number.tolist(), strict=True)):
        again[place] = one in reach and int(rank.start[row]) < reach[one]
        reach[one] = max(int(rank.end[row]), reach.get(one, 0))
    return rows[~again]


def _follows(start: np.ndarray, end: np.ndarray, others: np.ndarray) -> np.ndarray:
    never = np.iinfo(np.int64).max
    onward = np.append(start[1:], never)
    place = np.searchsorted(others, end, side="left")
    other = np.append(others, never)[place]
    return np.minimum(onward, other)


def _whole(number: np.ndarray) -> np.ndarray:
    """Which steps the next mark follows without a gap in the numbers; the last one has none."""
    apart = np.diff(number)
    stride = 1 if (apart == 1).any() or not len(apart) else int(apart[apart > 0].min(initial=np.iinfo(np.int64).max))
    return np.append(apart == stride, False)


def _with_own_work(rank: Rank, marks: _Marks) -> np.ndarray:
    """The end of each step on the host; of those that no mark follows, where the device has done what was launched in them."""
    device = rank.device
    begun = np.where(device.by_call, device.launch_ns, device.start)
    step = np.searchsorted(marks.start, begun, side="right") - 1
    inside = (step >= 0) & (begun < marks.end[np.maximum(step, 0)])
    done = marks.end.copy()
    np.maximum.at(done, step[inside], device.end[inside])
    onward = np.append(marks.start[1:], np.iinfo(np.int64).max)
    return np.where(marks.whole, marks.follows, np.minimum(done, onward))


def _cut_by_device(rank: Rank, marks: _Marks, ahead_ns: float) -> tuple[np.ndarray, np.ndarray] | None:
    """(starts, ends) by the device; None where it keeps up with the host, or where it is not known what some step launched."""
    device = rank.device
    known = np.flatnonzero(device.by_call)
    step = np.searchsorted(marks.start, device.launch_ns[known], side="right") - 1
    inside = (step >= 0) & (device.launch_ns[known] < marks.until[np.maximum(step, 0)])
    known, step = known[inside], step[inside]
    first, done = np.full(len(marks.start), np.iinfo(np.int64).max), np.full(len(marks.start), -1, np.int64)
    np.minimum.at(first, step, device.start[known])
    np.maximum.at(done, step, device.end[known])
    if (done < 0).any() or (done - marks.until).max() <= ahead_ns:
        return None
    done = np.maximum.accumulate(done)
    joined = np.append(False, marks.whole[:-1] & (marks.follows[:-1] == marks.start[1:]))
    before = np.append(first[0], done[:-1])
    return np.where(joined, before, np.maximum(first, before)), done


def _by_optimizer(rank: Rank) -> RankSteps | None:
    rows = rank.rows(Kind.ANNOTATION, Kind.HOST_OP)
    rows = rows[rank.named(rows, words.is_optimizer_step)]
    if len(rows) < 2:
        return None
    names, count = np.unique(rank.trace.events.name[rows], return_counts=True)
    rows = rows[rank.trace.events.name[rows] == names[np.argmax(count)]]  # several optimizers: the busiest one's steps
    ends = np.sort(rank.end[rows])
    if len(ends) < 2:
        return None
    return RankSteps(np.arange(1, len(ends)), ends[:-1], ends[1:], "optimizer_steps")


def _on_device(rank: Rank) -> RankSteps | None:
    rows = rank.rows(Kind.DEVICE_STEP)
    if not len(rows):
        return None
    tracks = np.unique(rank.trace.events.track[rows])
    rows = rows[rank.trace.events.track[rows] == tracks[0]]
    number = rank.trace.column("step").take(rows, -1)
    number = np.where(number >= 0, number, np.arange(len(rows)))
    return RankSteps(number, rank.start[rows], rank.end[rows], "device_steps")


def _by_calls(rank: Rank, limits: Thresholds) -> RankSteps | None:
    """Calls of the one compiled function that a loop calls again and again, where nothing marks steps: each lasts until the next one.

    It is the one whose outermost calls take the most time; the device must do most of its work from the first of them on.
    """
    rows = rank.rows(Kind.ANNOTATION)
    rows = rows[rank.named(rows, words.is_compiled_call)]
    if len(rows) < limits.calls_least or not len(rank.device):
        return None
    rows = rows[rank.nest(rows).parent < 0]
    names, which, count = np.unique(rank.trace.events.name[rows], return_inverse=True, return_counts=True)
    time = summed(which, rank.trace.events.duration_ns[rows], len(names))
    mine = rows[which == int(np.argmax(np.where(count >= limits.calls_least, time, -1)))]
    if len(mine) < limits.calls_least:
        return None
    start = np.sort(rank.start[mine])
    work = rank.device.end - rank.device.start
    behind = rank.device.start >= start[0]
    if 2 * int(work[behind].sum()) < int(work.sum()):
        return None
    last = max(int(rank.end[mine].max()), int(rank.device.end[behind].max(initial=0)))
    end = np.append(start[1:], last)
    note = f"no mark of steps: calls of {rank.name(int(mine[0]))} are taken for them"
    return RankSteps(np.arange(len(start)), start, end, "repeated_calls", (note,))
