"""What the names in a JSON trace say: kinds of events, numbers of steps, and what its processes and threads are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter

import numpy as np

from trainflash.profile.building import Interner, TraceBuilder
from trainflash.profile.categories import kind_of, step_number
from trainflash.profile.device_lines import Line, kind_by_name, line_of
from trainflash.profile.events import Kind, TrackKind

_NAME = attrgetter("name")
_BY_NAME = (Kind.HOST_OP, Kind.KERNEL)  # kinds of a category that a name may change
_MARKING = (Kind.HOST_OP, Kind.ANNOTATION, Kind.DEVICE_ANNOTATION)  # kinds of a category that may mark steps


class Names:
    """Ids of names, and what follows from a name; each distinct one is looked at once."""

    def __init__(self, strings: Interner) -> None:
        self._strings = strings
        self._seen = 0
        self._steps: dict[int, int] = {}
        self._special: dict[Kind, dict[int, Kind]] = {kind: {} for kind in _BY_NAME}
        self.kineto = False

    def ids(self, events: list) -> np.ndarray:
        """int32 ids of the events' names."""
        try:
            found = np.fromiter(map(self._strings.__getitem__, map(_NAME, events)), np.int32, len(events))
        except TypeError:
            found = np.fromiter([self._strings[str(event.name)] for event in events], np.int32, len(events))
        self._look_at_new()
        return found

    def _look_at_new(self) -> None:
        texts = self._strings.texts
        for number in range(self._seen, len(texts)):
            text = texts[number]
            step = step_number(text)
            if step is not None:
                self._steps[number] = step
            for category, kind in (("cpu_op", Kind.HOST_OP), ("kernel", Kind.KERNEL)):
                special = kind_of(category, text)
                if special is not kind:
                    self._special[kind][number] = special
        self._seen = len(texts)

    def kinds(self, category: str, names: np.ndarray) -> np.ndarray:
        """int8 kinds of events of one category."""
        usual = kind_of(category, "")
        self.kineto |= usual in (Kind.HOST_OP, Kind.RUNTIME, Kind.KERNEL)
        kinds = np.full(len(names), usual, np.int8)
        special = self._special.get(usual)
        if special:
            rows = np.flatnonzero(np.isin(names, np.fromiter(special, np.int32, len(special))))
            kinds[rows] = [special[name] for name in names[rows].tolist()]
        return kinds

    def steps(self, names: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(rows that mark a step, its number); None if none does."""
        if not self._steps or kinds[0] not in _MARKING:
            return None
        rows = np.flatnonzero(np.isin(names, np.fromiter(self._steps, np.int32, len(self._steps))) & np.isin(kinds, _MARKING))
        numbers = np.asarray([self._steps[name] for name in names[rows].tolist()], np.int64)
        return (rows, numbers) if len(rows) else None


def describe_tracks(builder: TraceBuilder, metadata: Mapping[str, Mapping[tuple[str, ...], str]]) -> None:
    """Give the tracks their names; rows of XLA's planes get the kinds that these names mean."""
    processes, threads = metadata.get("process_name", {}), metadata.get("thread_name", {})
    labels, sort = metadata.get("process_labels", {}), metadata.get("process_sort_index", {})
    with_streams = {process for (process, _), thread in threads.items() if thread.startswith("Stream #")}
    for number, track in enumerate(builder.tracks):
        process, thread = (track.process,), (track.process, track.thread)
        sort_index = sort.get(process, "")
        builder.describe(
            number,
            process_name=processes.get(process),
            thread_name=threads.get(thread),
            labels=labels.get(process),
            sort_index=int(sort_index) if sort_index.lstrip("-").isdecimal() and len(sort_index) < 18 else None,
        )
        line = line_of(processes.get(process, ""), threads.get(thread, ""), track.process in with_streams)
        if line is None or track.kind is TrackKind.ASYNC:
            continue
        builder.describe(number, kind=line.track, device=line.device, stream=line.stream)
        builder.kind_of_track[number] = _kinds(line)


def _kinds(line: Line) -> Callable[[str], Kind]:
    if line.kind is None:
        return partial(kind_by_name, line.track)
    return lambda name: line.kind
