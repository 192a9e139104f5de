"""Functions of the owner's with what they cost: their own time and that of the libraries below, with the backward of what they computed.

Only a trace with Python frames tells them. Host time counts for the innermost frame of the owner's; backward runs where no such frame is
open, and belongs to the frame that was open around the forward operator of the same sequence number. Device time follows its launches. The
tracer names functions by their first lines and paths without the entry of `sys.path`, so the capture says which files are the owner's;
of a foreign trace those count that lie where the main script lies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainflash.profile.analysis.figures import share, us
from trainflash.profile.analysis.regions import Regions
from trainflash.profile.analysis.tallies import summed
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.view import Rank
from trainflash.profile.events import Kind
from trainflash.schema.profile_ops import SourceSite

MOST = 25
_FRAME = re.compile(r"^(?P<file>[^()]+\.py)\((?P<line>\d+)\): (?P<function>.+)$")
_LIBRARY = re.compile(r"site-packages|dist-packages|^torch/|/torch/|/lib/python|^<|importlib|^trainflash_probe/")
_MAIN = "<module>"


@dataclass
class _Cost:
    """Nanoseconds over all ranks."""

    host: int = 0
    backward: int = 0  # of `host`
    device: int = 0
    calls: dict[str, int] | None = None  # library function right below → host time


def source_sites(timelines: Sequence[Timeline]) -> tuple[SourceSite, ...]:
    """Costliest first, by device time where launches are known, else by host time; none without Python frames."""
    found: dict[str, _Cost] = {}
    window = device = 0
    for timeline in timelines:
        own = _Own(timeline)
        if not len(own.frames.rows):
            continue
        window += timeline.window[1] - timeline.window[0]
        device += own.add_device(found)
        own.add_host(found)
    on_device = any(cost.device for cost in found.values())
    ordered = sorted(
        found.items(), key=lambda item: (-item[1].device, -item[1].host, item[0]) if on_device else (-item[1].host, 0, item[0])
    )
    return tuple(_site(name, cost, window, device) for name, cost in ordered[:MOST] if cost.host or cost.device)


class _Own:
    """The frames of the owner's in one rank."""

    def __init__(self, timeline: Timeline) -> None:
        rank = timeline.rank
        self.timeline, self.rank = timeline, rank
        self._rows = rank.on_leading(rank.rows(Kind.PYTHON))
        owned = rank.named(self._rows, _is_own(rank, self._rows))
        self.frames = Regions(rank, self._rows[owned])
        self._libraries = self._rows[~owned]

    def _names(self, of: np.ndarray) -> list[str]:
        """The innermost name of each path."""
        frames = self.frames
        return [self.rank.trace.strings[frames.names[frames.paths.name[path]]] for path in of.tolist()]

    def _by_name(self, found: dict[str, _Cost], of: np.ndarray, amount: np.ndarray, field: str) -> None:
        known = np.unique(of[of >= 0])
        totals = summed(np.searchsorted(known, of[of >= 0]), amount[of >= 0], len(known))
        for name, total in zip(self._names(known), totals.tolist(), strict=True):
            cost = found.setdefault(name, _Cost())
            setattr(cost, field, getattr(cost, field) + total)

    def add_device(self, found: dict[str, _Cost]) -> int:
        """Add device time by where it was launched; returns all of it within the window."""
        inside = self.timeline.inside
        of = self.frames.of_device_work()[inside.at]
        lost = np.flatnonzero(of < 0)
        of[lost] = self.frames.forward_of_device_work(inside.at[lost])
        self._by_name(found, of, inside.duration, "device")
        return int(inside.duration.sum())

    def add_host(self, found: dict[str, _Cost]) -> None:
        """Add host time of the leading threads, with backward moved to its forward."""
        frames, window = self.frames, self.timeline.window
        tree = frames.tree.clipped(window)
        self._by_name(found, frames.paths.of, tree.own_ns, "host")
        at, forward = frames.backward_ops()
        rows = self.rank.host_ops[0][at]
        duration = np.clip(self.rank.end[rows], *window) - np.clip(self.rank.start[rows], *window)
        here = frames.at(self.rank.trace.events.track[rows], self.rank.start[rows])
        moved = (here >= 0) & (forward >= 0)
        self._by_name(found, here[moved], -duration[moved], "host")
        for field in ("host", "backward"):
            self._by_name(found, forward[moved], duration[moved], field)
        self._add_calls(found)

    def _add_calls(self, found: dict[str, _Cost]) -> None:
        """Which function that is not the owner's takes most of each frame's time by itself."""
        rows = self._libraries
        every = np.sort(np.concatenate((rows, self.frames.rows)))
        own_ns = self.rank.nest(every).clipped(self.timeline.window).own_ns[np.searchsorted(every, rows)]
        of = self.frames.at(self.rank.trace.events.track[rows], self.rank.start[rows])
        kept = (of >= 0) & (own_ns > 0)
        pairs, place = np.unique(np.stack((of[kept], self.rank.trace.events.name[rows[kept]])), axis=1, return_inverse=True)
        totals = summed(place.ravel(), own_ns[kept], pairs.shape[1])
        for name, code, total in zip(self._names(pairs[0]), pairs[1].tolist(), totals.tolist(), strict=True):
            cost = found.setdefault(name, _Cost())
            cost.calls = cost.calls or {}
            text = self.rank.trace.strings[code]
            cost.calls[text] = cost.calls.get(text, 0) + total


def _is_own(rank: Rank, rows: np.ndarray):
    """The question whether a frame's name is one of the owner's code."""
    captured = rank.trace.provenance.get("trainflash")
    said = captured.get("own") if isinstance(captured, Mapping) else None
    if isinstance(said, list):
        files = frozenset(map(str, said))
        return lambda name: (frame := _FRAME.match(name)) is not None and frame["file"] in files
    mains = [frame for code in np.unique(rank.trace.events.name[rows]).tolist() if (frame := _FRAME.match(rank.trace.strings[code]))]
    tops = {_top(frame["file"]) for frame in mains if frame["function"] == _MAIN and not _LIBRARY.search(frame["file"])}

    def near_main(name: str) -> bool:
        frame = _FRAME.match(name)
        return frame is not None and not _LIBRARY.search(frame["file"]) and _top(frame["file"]) in tops

    return near_main


def _top(file: str) -> str:
    return file.rpartition("/")[0].partition("/")[0] if not file.startswith("/") else file.rpartition("/")[0]


def _site(name: str, cost: _Cost, window: int, device: int) -> SourceSite:
    frame = _FRAME.match(name)
    assert frame is not None  # only such names are the owner's
    calls = cost.calls or {}
    hottest = min(calls, key=lambda text: (-calls[text], text), default=None)
    return SourceSite(
        file=frame["file"],
        line=int(frame["line"]),
        function=frame["function"],
        host_duration=us(cost.host),
        host_share=share(cost.host, window),
        backward_duration=us(cost.backward),
        device_duration=us(cost.device),
        device_share=share(cost.device, device) if device else None,
        hottest_call=hottest,
    )
