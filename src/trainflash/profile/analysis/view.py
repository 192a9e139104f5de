"""One rank's trace as the questions need it: device work by class, host threads, and who launched what.

`Rank` computes each thing once, when it is first asked for. Device work is what stands on streams (`BUSY_KINDS`); lines that a tracer
derived from others are never counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.intervals import Spans, distinct, union
from trainflash.profile.analysis.nesting import Nest, nest
from trainflash.profile.events import BUSY_KINDS, Kind, Trace, TrackKind

CALLS = (Kind.RUNTIME, Kind.DRIVER)
WORKING = (Kind.HOST_OP, Kind.PYTHON, Kind.RUNTIME, Kind.DRIVER)
NO_TIME_NS = 1  # an event at or before this instant has no time: tracers write 0 for "unknown"


class Work(IntEnum):
    """What a device event does."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2


@dataclass(frozen=True)
class DeviceWork:
    """Device events by start. `row` is the event's row in the trace; `launch` the row of the call (or operator) that made it, -1 unknown.

    `launch_ns` is when that call began, on `launch_track`; -1 where `launch` is. `by_call`: it is a call, which tells the time of the
    launch; an operator only tells that it was made inside.
    """

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    work: np.ndarray
    device: np.ndarray  # small numbers into `Rank.devices`
    track: np.ndarray
    launch: np.ndarray
    launch_ns: np.ndarray
    launch_track: np.ndarray
    by_call: np.ndarray

    def __len__(self) -> int:
        return len(self.row)

    def spans(self, keep: np.ndarray | None = None) -> Spans:
        """The instants at which any of them runs."""
        return union(self.start, self.end) if keep is None else union(self.start[keep], self.end[keep])

    def take(self, at: np.ndarray) -> DeviceWork:
        """Some of the events."""
        return DeviceWork(**{name: column[at] for name, column in vars(self).items()})


class Rank:
    """One trace, ready to be asked."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.start = trace.events.start_ns
        self.end = trace.events.start_ns + trace.events.duration_ns
        self._answers: dict[tuple[str, str], np.ndarray] = {}

    @cached_property
    def timed(self) -> np.ndarray:
        """Which events have a time. A file whose clock begins at 0 is no file of missing times."""
        starts = self.start
        if not len(starts) or np.median(starts) < 1e12:
            return np.ones(len(starts), bool)
        return starts > NO_TIME_NS

    @cached_property
    def track_kind(self) -> np.ndarray:
        return np.asarray([int(track.kind) for track in self.trace.tracks], np.int8)

    def rows(self, *kinds: Kind) -> np.ndarray:
        """Rows of these kinds that have a time; int32, there are many and few traces have 2 billion events."""
        found = self.trace.rows(*kinds).astype(np.int32)
        return found if self._all_timed else found[self.timed[found]]

    @cached_property
    def _all_timed(self) -> bool:
        return bool(self.timed.all())

    def named(self, rows: np.ndarray, question: Callable[[str], object]) -> np.ndarray:
        """Whether each row's name answers `question` with yes; asked once per distinct name."""
        return self._ask(self.trace.events.name, rows, question)

    def _ask(self, column: np.ndarray, rows: np.ndarray, question: Callable[[str], object]) -> np.ndarray:
        codes = column[rows]
        answers = np.zeros(len(self.trace.strings), bool)
        answers[codes] = True
        for code in np.flatnonzero(answers).tolist():
            answers[code] = bool(question(self.trace.strings[code]))
        return answers[codes]

    def name(self, row: int) -> str:
        return self.trace.strings[self.trace.events.name[row]]

    def spans_of(self, rows: np.ndarray) -> Spans:
        return union(self.start[rows], self.end[rows])

    @cached_property
    def device(self) -> DeviceWork:
        """All work of all devices, by start, then row."""
        rows = self.rows(*BUSY_KINDS)
        rows = rows[self.track_kind[self.trace.events.track[rows]] != TrackKind.DERIVED]
        rows = rows[np.lexsort((rows, self.start[rows]))]
        launch = self._launches(rows).astype(np.int32)
        known = launch >= 0
        safe = np.where(known, launch, 0)
        none = np.int32(-1)
        return DeviceWork(
            row=rows,
            start=self.start[rows],
            end=self.end[rows],
            work=self._work(rows),
            device=self._device_numbers(rows),
            track=self.trace.events.track[rows],
            launch=launch,
            launch_ns=np.where(known, self.start[safe], none),
            launch_track=np.where(known, self.trace.events.track[safe], none),
            by_call=known & np.isin(self.trace.events.kind[safe], np.asarray(CALLS, np.int8)),
        )

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that worked, by number."""
        return tuple(self._device_names)

    @cached_property
    def _device_names(self) -> list[str]:
        rows = self.rows(*BUSY_KINDS)
        tracks = distinct(self.trace.events.track[rows])
        named = {self._device_of(int(track)) for track in tracks}
        return sorted(named, key=lambda text: (len(text), text))

    def _device_of(self, track: int) -> str:
        known = self.trace.tracks[track]
        return str(known.device) if known.device is not None else known.process

    def _device_numbers(self, rows: np.ndarray) -> np.ndarray:
        number = {name: place for place, name in enumerate(self._device_names)}
        of_track = np.asarray([number.get(self._device_of(track), -1) for track in range(len(self.trace.tracks))], np.int32)
        return of_track[self.trace.events.track[rows]] if len(rows) else np.empty(0, np.int32)

    def _work(self, rows: np.ndarray) -> np.ndarray:
        kind = self.trace.events.kind[rows]
        work = np.where(kind == Kind.KERNEL, Work.COMPUTE, Work.COPY).astype(np.int8)
        kernels = np.flatnonzero(kind == Kind.KERNEL)
        if len(kernels):
            mine = rows[kernels]
            work[kernels[self.named(mine, words.is_copy)]] = Work.COPY
            category = self.trace.column("hlo_category")
            moving = self.named(mine, words.is_communication) | self.trace.column("collective").has(mine)
            if len(category):
                codes = category.take(mine, -1)
                known = np.unique(codes[codes >= 0])
                telling = [code for code in known if words.is_communication(self.trace.strings[code])]
                moving |= np.isin(codes, telling)
            work[kernels[moving]] = Work.COMMUNICATION
        return work

    def _launches(self, rows: np.ndarray) -> np.ndarray:
        """The call that launched each device event: same correlation, the last that began before it. Else its operator, by external id."""
        found = np.full(len(rows), -1, np.int64)
        column = self.trace.column("correlation")
        self._join(found, rows, self.rows(*CALLS), column)
        self._part_processes(found, rows, column)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            mine = found[missing]
            self._join(mine, rows[missing], self.rows(Kind.HOST_OP, Kind.ANNOTATION), self.trace.column("external_id"))
            found[missing] = mine
        return found

    @cached_property
    def ambiguous(self) -> int:
        """Device events whose launch is unknown because several processes of one file used the same correlation."""
        _ = self.device
        return self._ambiguous

    def _part_processes(self, found: np.ndarray, rows: np.ndarray, column) -> None:
        """Of processes in one file each counts its correlations by itself: an id that several of them used belongs to the one that drives
        the event's device, as the ids tell that only one of them used; else its call stays unknown."""
        self._ambiguous = 0
        calls = self.rows(*CALLS)
        calls = calls[column.has(calls)]
        names = sorted({self.trace.tracks[track].process for track in distinct(self.trace.events.track[calls]).tolist()})
        joined = np.flatnonzero((found >= 0) & column.has(rows))
        if len(names) < 2 or not len(joined):
            return
        number = {name: place for place, name in enumerate(names)}
        of_track = np.asarray([number.get(track.process, -1) for track in self.trace.tracks], np.int64)
        process, key = of_track[self.trace.events.track[calls]], column.take(calls, 0)
        order = np.lexsort((process, key))
        used = np.unique(np.stack((key[order], process[order])), axis=1)[0]
        several = used[1:][used[1:] == used[:-1]]
        shared = np.isin(column.take(rows[joined], 0), several)
        device = self._device_numbers(rows)
        drives = np.full(len(self._device_names), -1, np.int64)
        plain = joined[~shared]
        votes = np.zeros((len(drives), len(names)), np.int64)
        np.add.at(votes, (device[plain], of_track[self.trace.events.track[found[plain]]]), 1)
        told = votes.any(axis=1)
        drives[told] = votes[told].argmax(axis=1)
        unsure = joined[shared]
        found[unsure] = -1
        for one in np.unique(drives[device[unsure]]).tolist():
            if one >= 0:
                mine = unsure[drives[device[unsure]] == one]
                joins = np.full(len(mine), -1, np.int64)
                self._join(joins, rows[mine], calls[process == one], column)
                found[mine] = joins
        self._ambiguous = int((found[unsure] < 0).sum())

    def _join(self, found: np.ndarray, rows: np.ndarray, calls: np.ndarray, column) -> None:
        calls = calls[column.has(calls)]
        mine = np.flatnonzero(column.has(rows))
        if not len(calls) or not len(mine):
            return
        key, wanted = column.take(calls, 0), column.take(rows[mine], 0)
        real = wanted != 0  # 0: the tracer does not know
        mine, wanted = mine[real], wanted[real]
        order = np.lexsort((calls, self.start[calls], key))
        calls, key = calls[order], key[order]
        values = distinct(key)
        code, asked = np.searchsorted(values, key), np.searchsorted(values, wanted)
        there = (asked < len(values)) & (values[np.minimum(asked, len(values) - 1)] == wanted)
        mine, asked = mine[there], asked[there]
        if not len(mine):
            return
        first = np.searchsorted(code, asked, side="left")
        last = np.searchsorted(code, asked, side="right") - 1
        place = first.copy()
        again = np.flatnonzero(last > first)  # an id that was used again: the last call before the work began
        begins = self.start[calls]
        for one in again.tolist():
            low, high = first[one], last[one] + 1
            place[one] = max(low + np.searchsorted(begins[low:high], self.start[rows[mine[one]]], side="right") - 1, low)
        found[mine] = calls[place]

    @cached_property
    def leading_tracks(self) -> np.ndarray:
        """Host threads that drive the device: those that launch its work, or carry step marks; without either all that run operators."""
        launching = distinct(self.device.launch_track)
        launching = launching[launching >= 0]
        marks = self.rows(Kind.ANNOTATION)
        marks = marks[self.named(marks, lambda name: words.step_number(name) is not None or words.is_optimizer_step(name))]
        found = np.union1d(launching, self.trace.events.track[marks])
        if not len(found):
            found = distinct(self.trace.events.track[self.rows(Kind.HOST_OP, Kind.ANNOTATION)])
        return found[self.track_kind[found] == TrackKind.HOST] if len(found) else found

    def on_leading(self, rows: np.ndarray) -> np.ndarray:
        """Those of `rows` that lie on a leading thread."""
        return rows[np.isin(self.trace.events.track[rows], self.leading_tracks)]

    def nest(self, rows: np.ndarray) -> Nest:
        """The nest of `rows`, which must ascend."""
        return nest(self.start[rows], self.trace.events.duration_ns[rows], self.trace.events.track[rows])

    @cached_property
    def host_ops(self) -> tuple[np.ndarray, Nest]:
        """Operators of the host, and how they nest."""
        rows = self.rows(Kind.HOST_OP)
        return rows, self.nest(rows)

    @cached_property
    def device_op(self) -> np.ndarray:
        """For each device event the row of the innermost host operator around its launch, -1 where unknown."""
        rows, tree = self.host_ops
        known = np.flatnonzero(self.device.launch >= 0)
        found = np.full(len(self.device), -1, np.int64)
        inner = tree.innermost(self.device.launch_track[known], self.device.launch_ns[known])
        found[known] = np.where(inner >= 0, rows[inner] if len(rows) else -1, -1)
        return found
