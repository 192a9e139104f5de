"""One rank within its window, as sets of instants: what its devices did, and what the threads that drive them did meanwhile.

A process may drive several devices. Each of them is a `Timeline` of its own beside the same threads, so that what one device does hides
nothing of another's. All of it is clipped to the window here, so that nothing outside of the window is ever summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.intervals import Spans, clipped, joined, shared_out, span, union, without
from trainflash.profile.analysis.tallies import summed
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.view import CALLS, DeviceWork, Rank, Work
from trainflash.profile.events import Kind

PARTS = ("compute", "communication", "copy", "host", "stall")


class Threads:
    """What the driving threads of one rank did within its window."""

    def __init__(self, rank: Rank, window: tuple[int, int]) -> None:
        self.rank, self.window = rank, window

    def _during(self, rows: np.ndarray) -> Spans:
        return clipped(self.rank.spans_of(rows), self.window)

    def _named(self, question, *kinds: Kind) -> np.ndarray:
        rows = self.rank.on_leading(self.rank.rows(*kinds))
        return rows[self.rank.named(rows, question)]

    @cached_property
    def _synchronizing(self) -> np.ndarray:
        return self._named(words.is_synchronising, *CALLS, Kind.HOST_OP, Kind.ANNOTATION)

    @cached_property
    def _loading(self) -> np.ndarray:
        return self._named(words.is_loading, Kind.HOST_OP, Kind.ANNOTATION, Kind.PYTHON)

    @cached_property
    def _events(self) -> np.ndarray:
        events = self.rank.on_leading(self.rank.rows(Kind.HOST_OP, Kind.PYTHON, *CALLS))
        return np.union1d(events, self._dispatching) if len(self._dispatching) else events

    @cached_property
    def _dispatching(self) -> np.ndarray:
        rows = self.rank.rows(Kind.ANNOTATION)  # of all threads: calls that a device's tracer saw stand on lines of their own
        return rows[self.rank.named(rows, words.is_dispatching)]

    @cached_property
    def synchronizing(self) -> Spans:
        """A thread waits for the device."""
        return self._during(self._synchronizing)

    @cached_property
    def loading(self) -> Spans:
        """A thread fetches its next batch."""
        return self._during(self._loading)

    @property  # large, and asked for once
    def events(self) -> Spans:
        """Any event but the marks of steps and annotations."""
        return self._during(self._events)

    @property  # large, and asked for once
    def calling(self) -> Spans:
        """A call into the runtime, or the runtime's own work before one."""
        return joined([self._during(self.rank.on_leading(self.rank.rows(*CALLS))), self._during(self._dispatching)])

    @property  # large, and asked for once
    def operating(self) -> Spans:
        """An operator, or a call into the runtime."""
        return joined([self._during(self.rank.on_leading(self.rank.rows(Kind.HOST_OP))), self.calling])

    @cached_property
    def collective_calls(self) -> Spans:
        """A thread is inside a call of a process group."""
        return self._during(self._named(words.is_collective_call, Kind.HOST_OP, Kind.ANNOTATION))

    @cached_property
    def working(self) -> Spans:
        """A thread works: it neither waits for the device nor sleeps. What one thread waits for, another may be working at."""
        sleeping = self._named(words.is_waiting_frame, Kind.PYTHON)
        each = []
        for track in self.rank.leading_tracks.tolist():
            events, loading, waiting, asleep = (
                self._during(self._on(track, rows)) for rows in (self._events, self._loading, self._synchronizing, sleeping)
            )
            each.append(without(joined([without(events, asleep), loading]), waiting))
        return joined(each)

    def _on(self, track: int, rows: np.ndarray) -> np.ndarray:
        """Those of `rows`, which ascend and so go by track, that lie on `track`."""
        low, high = np.searchsorted(self.rank.trace.events.track[rows], [track, track + 1])
        return rows[low:high]


@dataclass(frozen=True)
class Inside:
    """The device events that meet the window: `at` indexes the timeline's `device`; `start` and `end` are clipped to the window."""

    at: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @property
    def duration(self) -> np.ndarray:
        return self.end - self.start


class Timeline:
    """One rank within its window: all of its devices, or (`mine`: which events of `rank.device`) those of one of them."""

    def __init__(self, rank: Rank, window: tuple[int, int], threads: Threads | None = None, mine: np.ndarray | None = None) -> None:
        self.rank, self.window, self.mine = rank, window, mine
        self.threads = threads or Threads(rank, window)
        self.whole = span(window)

    @cached_property
    def device(self) -> DeviceWork:
        """The device work of this timeline, before, in and after the window."""
        return self.rank.device if self.mine is None else self.rank.device.take(self.mine)

    def of_events(self, values: np.ndarray) -> np.ndarray:
        """`values`, one for each event of `rank.device`, for the events of this timeline."""
        return values if self.mine is None else values[self.mine]

    def devices(self, limits: Thresholds = DEFAULT) -> tuple[Timeline, ...]:
        """A timeline for each device. The work of one that hardly computes beside another counts to that other one."""
        device = self.rank.device
        kernels = np.flatnonzero(device.work != Work.COPY)
        time = summed(device.device[kernels], (device.end - device.start)[kernels], len(self.rank.devices))
        if len(time) < 2 or not time.any():
            return (self,)
        own = np.where(time >= limits.device_least * time.max(), np.arange(len(time)), int(time.argmax()))
        kept = np.unique(own).tolist()
        if len(kept) < 2:
            return (self,)
        of_event = own[device.device]
        return tuple(Timeline(self.rank, self.window, self.threads, np.flatnonzero(of_event == number)) for number in kept)

    @cached_property
    def inside(self) -> Inside:
        """The events that meet the window."""
        device = self.device
        at = np.flatnonzero(self.meets(device.start, device.end))
        return Inside(at, *(self.clip(edge[at]) for edge in (device.start, device.end)))

    def meets(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Which [start, end) have an instant in the window."""
        return (end > self.window[0]) & (start < self.window[1])

    def clip(self, instants: np.ndarray) -> np.ndarray:
        return np.clip(instants, *self.window)

    def during(self, spans: Spans) -> Spans:
        return clipped(spans, self.window)

    def _work(self, kind: Work) -> Spans:
        mine = self.device.work[self.inside.at] == kind
        return union(self.inside.start[mine], self.inside.end[mine])

    @cached_property
    def compute(self) -> Spans:
        """A kernel computes; without a device: an operator runs on the host."""
        if not len(self.rank.device):
            operators = self.during(self.rank.spans_of(self.rank.rows(Kind.HOST_OP)))
            return without(operators, joined([self.threads.loading, self.communication]))
        return self._work(Work.COMPUTE)

    @cached_property
    def communication(self) -> Spans:
        if not len(self.rank.device):
            rows = self.rank.rows(Kind.HOST_OP, Kind.ANNOTATION)
            return self.during(self.rank.spans_of(rows[self.rank.named(rows, words.is_collective_call)]))
        return self._work(Work.COMMUNICATION)

    @cached_property
    def copy(self) -> Spans:
        return self._work(Work.COPY)

    @property  # large, and asked for once
    def busy(self) -> Spans:
        """Something runs on a device."""
        return joined([self.compute, self.communication, self.copy])

    @cached_property
    def idle(self) -> Spans:
        return without(self.whole, self.busy)

    @cached_property
    def parts_ns(self) -> dict[str, int]:
        """The window shared out among `PARTS`: device work first, computing before communication before copies."""
        given = shared_out(self.whole, [self.compute, self.communication, self.copy, self.threads.working])
        return {name: spans.total for name, spans in zip(PARTS, given, strict=True)}
