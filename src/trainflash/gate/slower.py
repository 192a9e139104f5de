"""Which phase of a step takes longer than before, and which line in it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Protocol

from trainflash.schema import GateLine, GatePhase, Location
from trainflash.schema.gate_changes import SlowerPart

LEAST_SHARE = 0.2  # of all that was lost: smaller parts are not what the change did
MOST_PARTS = 3

Moved = Callable[[Location], int | None]  # where a line of the baseline stands now; None: it is gone
Source = Callable[[str], str | None]  # the text of a file of the project; None: it is not there


class Seen(Protocol):
    """What a run with facts showed, such as `GateMetrics`."""

    @property
    def phases(self) -> Mapping[str, GatePhase]: ...
    @property
    def lines(self) -> tuple[GateLine, ...]: ...


def unmoved(place: Location) -> int | None:
    """For sources that are not known: every line where it was."""
    return place.line


def moved_between(before: Source, now: Source) -> Moved:
    """Where lines stand after the change, by the texts of both sides; a line that was edited in place counts as the same."""
    known: dict[str, dict[int, int] | None] = {}

    def moved(place: Location) -> int | None:
        if place.file not in known:
            known[place.file] = _lines(before(place.file), now(place.file))
        lines = known[place.file]
        return place.line if lines is None else lines.get(place.line)

    return moved


def parts(baseline: Seen, current: Seen, moved: Moved = unmoved) -> tuple[SlowerPart, ...]:
    """Phases that take more of a step, with the line that grew most in each; largest first. () where phases were not seen on both sides."""
    if not baseline.phases or not current.phases:
        return ()
    ours = {name: phase.mean_ms for name, phase in current.phases.items()}
    theirs = {name: phase.mean_ms for name, phase in baseline.phases.items()}
    grown = {name: ms - theirs.get(name, 0.0) for name, ms in ours.items() if ms > theirs.get(name, 0.0)}
    lost = sum(grown.values())
    named = sorted((name for name in grown if grown[name] >= LEAST_SHARE * lost), key=lambda name: -grown[name])[:MOST_PARTS]
    before = _by_place(baseline.lines, moved)
    return tuple(_part(name, theirs.get(name), ours[name], current.lines, before) for name in named)


def _part(
    phase: str, before_ms: float | None, now_ms: float, lines: tuple[GateLine, ...], before: Mapping[tuple[str, int], float]
) -> SlowerPart:
    mine = [line for line in lines if line.phase == phase]
    if not mine:
        return SlowerPart(phase, before_ms, now_ms)
    grew = max(mine, key=lambda line: line.mean_ms - before.get((line.location.file, line.location.line), 0.0))
    was = before.get((grew.location.file, grew.location.line))
    if was is not None and grew.mean_ms <= was:
        return SlowerPart(phase, before_ms, now_ms)
    return SlowerPart(phase, before_ms, now_ms, grew.location, was, grew.mean_ms)


def _lines(before: str | None, now: str | None) -> dict[int, int] | None:
    """Old line → new line; None where a text is not known."""
    if before is None or now is None:
        return None
    found = {}
    matched = difflib.SequenceMatcher(None, before.splitlines(), now.splitlines(), autojunk=False)
    for tag, old, old_end, new, new_end in matched.get_opcodes():
        if tag == "equal" or (tag == "replace" and old_end - old == new_end - new):
            found |= {old + step + 1: new + step + 1 for step in range(old_end - old)}
    return found


def _by_place(lines: tuple[GateLine, ...], moved: Moved) -> dict[tuple[str, int], float]:
    """Milliseconds a step of the baseline's lines, by where they stand now."""
    found: dict[tuple[str, int], float] = {}
    for line in lines:
        now = moved(line.location)
        if now is not None:
            key = (line.location.file, now)
            found[key] = found.get(key, 0.0) + line.mean_ms
    return found
