"""Which of the owner's lines the time lies in, and which of them a more specific cause than "host code" explains."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import LineCost, Location, Site, Summary, SyncPoint

# Comprehensions, generator expressions and lambdas, which Python runs as functions of their own inside the one they are written in.
_PIECES = re.compile(r"(\.<locals>\.<(listcomp|setcomp|dictcomp|genexpr|lambda)>)+$")
_BARE = re.compile(r"<(listcomp|setcomp|dictcomp|genexpr)>")  # of a module; of any function where Python knows no qualified names


@dataclass(frozen=True)
class Sync:
    """All calls of one line that wait for the device or copy a tensor to the host."""

    location: Location | None
    phase: str
    calls: str  # "item", "cpu and item"
    count: int
    mean_ms: float
    share: float  # of the wall time: the calls, or the whole line where it does little else
    on_device: bool


STRAY = 0.05  # own: a sample at the border of two phases may fall into the one beside; of a function's samples these are few


def running_in(summary: Summary, phases: Iterable[str]) -> set[tuple[str, str]]:
    """File and name of the owner's functions that run in one of `phases`, by more than stray samples."""
    whole: dict[tuple[str, str], float] = {}
    inside: dict[tuple[str, str], float] = {}
    for line in (each for each in summary.lines if each.role == "main"):
        key = line.location.file, line.location.function
        whole[key] = whole.get(key, 0.0) + line.share
        inside[key] = inside.get(key, 0.0) + line.share * (line.phase in phases)
    return {key for key, share in inside.items() if share > STRAY * whole[key]}


def hottest(lines: Iterable[LineCost]) -> Location | None:
    """The hottest line of the hottest of the owner's functions: one slow line of many cheap ones does not hide it.

    A comprehension, generator expression or lambda is part of the function that it is written in, and all pieces of a line are one line.
    """
    known = list(lines)
    named = {_line(line.location): line.location.function for line in known if not _BARE.fullmatch(line.location.function)}
    functions: dict[tuple[str, str], float] = {}
    of_line: dict[tuple[str, int], float] = {}
    inside = [(line.location.file, _enclosing(line.location, named)) for line in known]
    for line, function in zip(known, inside, strict=True):
        functions[function] = functions.get(function, 0.0) + line.share
        of_line[_line(line.location)] = of_line.get(_line(line.location), 0.0) + line.share
    if not functions:
        return None
    busiest = max(functions, key=lambda function: functions[function])
    pieces = [line for line, function in zip(known, inside, strict=True) if function == busiest]
    return max(pieces, key=lambda line: (of_line[_line(line.location)], line.location.function == busiest[1], line.share)).location


def _enclosing(location: Location, named: dict[tuple[str, int], str]) -> str:
    """The function that the code at `location` is written in; `named` are the qualified names known of lines."""
    function = location.function
    if _BARE.fullmatch(function):
        function = named.get(_line(location), "<module>")
    return enclosing(function)


def enclosing(function: str) -> str:
    """The qualified name of the function that a comprehension, generator expression or lambda is written in; else its own."""
    return _PIECES.sub("", function)


def same_line(one: Location, other: Location | None) -> bool:
    """Whether both are in the same line, whichever of its pieces runs."""
    return other is not None and _line(one) == _line(other)


def lines_in(summary: Summary, phase: str, role: str = "main", part: str | None = None) -> list[LineCost]:
    """Lines of `role` in `phase`; `part` "" or a part of making batches, None for any but waiting for requests."""
    found = [line for line in summary.lines if line.phase == phase and line.role == role]
    return [line for line in found if line.part != "waiting"] if part is None else [line for line in found if line.part == part]


def messages_for_nobody(summary: Summary) -> list[LineCost]:
    """Lines in forward and backward that put a log message together, again and again, whose level nobody listens to."""
    places = [place.location for place in summary.written if place.unheard and place.often]
    return [line for name in COMPUTE for line in lines_in(summary, name) if any(same_line(place, line.location) for place in places)]


def syncs(summary: Summary, limits: Thresholds) -> tuple[Sync, ...]:
    """Sync points by line and phase, costliest first. Off a device a line that mostly feeds such calls is counted as a whole."""
    groups: dict[tuple[Location | None, str, bool], list[SyncPoint]] = {}
    for point in summary.sync_points:
        groups.setdefault((point.location, point.phase, point.on_device), []).append(point)
    found = []
    for (location, phase, on_device), points in groups.items():
        calls = sum(point.count for point in points)
        share = sum(point.share for point in points)
        whole = 0.0 if on_device or location is None else _share_of_line(summary, phase, location)
        found.append(
            Sync(
                location=location,
                phase=phase,
                calls=" and ".join(sorted({point.call for point in points})),
                count=calls,
                mean_ms=sum(point.count * point.mean_ms for point in points) / calls if calls else 0.0,
                share=whole if share < whole and share >= limits.sync_of_line * whole else share,
                on_device=on_device,
            )
        )
    return tuple(sorted(found, key=lambda sync: -sync.share))


def metrics_between(summary: Summary) -> list[Site]:
    """Places between the phases at which libraries of metrics run, costliest first."""
    return [site for site in summary.sites if site.role == "main" and site.phase == "Other" and site.called_back == "metric"]


def unnamed(summary: Summary, phase: str, waits: tuple[Sync, ...], limits: Thresholds) -> list[LineCost]:
    """The owner's lines in `phase` less what collections, emptied caches, sync points, metrics and starting processes take of them."""
    taken: dict[tuple[str, int], float] = {}
    for sync in waits:
        if sync.location is not None and sync.phase == phase:
            _take(taken, sync.location, sync.share)
    if summary.collections is not None and summary.collections.location is not None:
        _take(taken, summary.collections.location, summary.collections.share)
    if summary.memory is not None and summary.memory.empty_cache_at is not None:
        _take(taken, summary.memory.empty_cache_at, summary.memory.empty_cache_share)
    for started in summary.started:
        if started.count >= limits.started_times:
            for location, share in started.lines:
                _take(taken, location, share)
    measuring = metrics_between(summary) if phase == "Other" else []
    if sum(site.share for site in measuring) >= limits.dominant:
        for site in measuring:
            _take(taken, site.location, site.share)
    left = []
    for line in lines_in(summary, phase):
        whole = _share_of_line(summary, phase, line.location)
        rest = line.share * (1 - taken.get(_line(line.location), 0.0) / whole) if whole else 0.0
        if rest > 0.2 * line.share:  # samples and clocks differ by some percent: what is left then is no cost of its own
            left.append(LineCost(line.role, line.phase, line.location, rest, line.part))
    return left


def _share_of_line(summary: Summary, phase: str, location: Location) -> float:
    return sum(line.share for line in lines_in(summary, phase) if same_line(line.location, location))


def _take(taken: dict[tuple[str, int], float], location: Location, share: float) -> None:
    taken[_line(location)] = taken.get(_line(location), 0.0) + share


def _line(location: Location) -> tuple[str, int]:
    return location.file, location.line
