"""The program's own names as a tree: scopes of XLA, annotations, `record_function`, modules. Device time of what was launched inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.figures import us
from trainflash.profile.analysis.nesting import Nest, paths
from trainflash.profile.analysis.tallies import summed
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.view import Rank
from trainflash.profile.events import Kind
from trainflash.schema.profile_ops import RegionAggregate

BETWEEN = "/"
NO_REGION = "(no region)"
BACKWARD = "(backward)"


@dataclass
class _Region:
    count: int = 0
    inclusive: int = 0
    exclusive: int = 0
    host: int | None = None


class Regions:
    """Regions of one rank's host threads, and which region each instant or device event belongs to. `rows`: other events than usual."""

    def __init__(self, rank: Rank, rows: np.ndarray | None = None) -> None:
        self.rank = rank
        self.rows = _region_rows(rank) if rows is None else rows
        self.tree: Nest = rank.nest(self.rows)
        codes = rank.trace.events.name[self.rows]
        self.names, mine = _one_name(rank, codes) if len(codes) else (codes, codes)
        self.paths = paths(self.tree, mine.astype(np.int64))
        self._texts: dict[int, str] = {}

    def text(self, path: int) -> str:
        """The names of a path from the outside in, with `/` between; -1 is outside of all regions."""
        if path not in self._texts:
            self._texts[path] = self._spelled(path)
        return self._texts[path]

    def _spelled(self, path: int) -> str:
        if path < 0:
            return NO_REGION
        parts = []
        while path >= 0:
            parts.append(_readable(words.without_numbers(self.rank.trace.strings[self.names[self.paths.name[path]]])))
            path = int(self.paths.parent[path])
        return BETWEEN.join(reversed(parts))

    def at(self, track: np.ndarray, instant: np.ndarray) -> np.ndarray:
        """The path of the innermost region at each instant of each track, -1 where there is none."""
        inner = self.tree.innermost(track, instant)
        return np.where(inner >= 0, self.paths.of[inner] if len(self.paths.of) else -1, -1)

    def of_device_work(self) -> np.ndarray:
        """The path of each device event by its launch, -1 unknown."""
        device = self.rank.device
        found = np.full(len(device), -1, np.int64)
        known = np.flatnonzero(device.launch >= 0)
        found[known] = self.at(device.launch_track[known], device.launch_ns[known])
        return found

    def forward_of_device_work(self, unknown: np.ndarray) -> np.ndarray:
        """For device events (their numbers) outside of all regions: the path of the forward operator that their backward one belongs to."""
        rank = self.rank
        rows, tree = rank.host_ops
        backward = self._of_backward
        found = np.full(len(unknown), -1, np.int64)
        if not backward.any():
            return found
        place = np.searchsorted(rows, np.maximum(rank.device_op[unknown], 0))
        at = np.where(rank.device_op[unknown] >= 0, place, -1)
        climbing = np.flatnonzero(at >= 0)
        while len(climbing):
            climbing = climbing[~backward[at[climbing]]]
            at[climbing] = tree.parent[at[climbing]]
            climbing = climbing[at[climbing] >= 0]
        mine = np.flatnonzero(at >= 0)
        found[mine] = self._at_forward(at[mine])
        return found

    def backward_ops(self) -> tuple[np.ndarray, np.ndarray]:
        """(outermost operators of backward, as numbers into the host's operators; path of the forward operator of each, -1 unknown)."""
        _, tree = self.rank.host_ops
        backward = self._of_backward
        above = np.maximum(tree.parent, 0)
        at = np.flatnonzero(backward & ~((tree.parent >= 0) & backward[above])) if len(backward) else np.empty(0, np.int64)
        return at, self._at_forward(at)

    @cached_property
    def _sequence(self) -> np.ndarray:
        return self.rank.trace.column("sequence").take(self.rank.host_ops[0], -1)

    @cached_property
    def _of_backward(self) -> np.ndarray:
        return (self._sequence >= 0) & (self.rank.trace.column("forward_thread").take(self.rank.host_ops[0], -1) > 0)

    def _at_forward(self, at: np.ndarray) -> np.ndarray:
        """The path around the forward operator of each of these operators of backward (numbers into the host's), -1 unknown.

        Autograd runs on a thread of its own, where no module is open; it gives the backward node the sequence number of the forward one.
        Operators without a gradient show the number that the next one will take, so the last operator of a number is the one that took it.
        """
        rank, sequence = self.rank, self._sequence
        rows = rank.host_ops[0]
        found = np.full(len(at), -1, np.int64)
        forward = np.flatnonzero((sequence >= 0) & ~self._of_backward)
        if not len(forward) or not len(self.tree):
            return found
        forward = forward[np.lexsort((rank.start[rows[forward]], sequence[forward]))]
        numbers, wanted = sequence[forward], sequence[at]
        last = np.maximum(np.searchsorted(numbers, wanted, side="right") - 1, 0)
        same = numbers[last] == wanted
        origin = rows[forward[last[same]]]
        found[same] = self.at(rank.trace.events.track[origin], rank.start[origin])
        return found


def regions(timelines: Sequence[Timeline], made: Sequence[Regions], limit: int) -> tuple[RegionAggregate, ...]:
    """The tree as rows, largest first; all ranks together. By device time where launches or scopes are known, else by host time."""
    found: dict[str, _Region] = {}
    on_device = False
    for timeline, mine in zip(timelines, made, strict=True):
        named = _scopes(found, timeline)
        on_device |= bool(named.any())
        on_device |= _host_regions(found, timeline, mine, named)
    basis = "device" if on_device else "host"

    def size(item: tuple[str, _Region]) -> tuple[int, int, str]:
        path, region = item
        return (-region.inclusive, -(region.host or 0), path) if on_device else (-(region.host or 0), 0, path)

    answers = []
    for path, region in sorted(found.items(), key=size)[:limit]:
        inclusive = region.inclusive if on_device else region.host or 0
        answers.append(
            RegionAggregate(
                path=path,
                depth=_depth(path, found),
                count=region.count,
                inclusive_duration=us(inclusive),
                exclusive_duration=us(region.exclusive),
                basis=basis,
                host_inclusive_us=None if region.host is None else us(region.host),
            )
        )
    return tuple(answers)


def _depth(path: str, found: dict[str, _Region]) -> int:
    """How many known paths lie above it: names may hold a `/` of their own."""
    depth, end = 0, path.find(BETWEEN)
    while end >= 0:
        depth += path[:end] in found
        end = path.find(BETWEEN, end + 1)
    return depth


def _scopes(found: dict[str, _Region], timeline: Timeline) -> np.ndarray:
    """Paths that the compiler left on device events themselves; says which events within the window have one."""
    rank, inside = timeline.rank, timeline.inside
    codes = rank.trace.column("scope").take(timeline.device.row[inside.at], -1)
    named = codes >= 0
    known, place = np.unique(codes[named], return_inverse=True)
    total = summed(place, inside.duration[named], len(known))
    for code, amount, times in zip(known.tolist(), total.tolist(), np.bincount(place, minlength=len(known)).tolist(), strict=True):
        parts = scope_parts(rank.trace.strings[code])
        for depth in range(1, len(parts) + 1):
            region = found.setdefault(BETWEEN.join(parts[:depth]), _Region())
            region.count += times
            region.inclusive += amount
            region.exclusive += amount if depth == len(parts) else 0
    return named


def scope_parts(scope: str) -> list[str]:
    """The names of a scope path without the op at its end: `jit(step)/transformer/attn/dot_general:` → three names."""
    parts = [part for part in scope.strip(":/").split(BETWEEN) if part]
    return parts[:-1] or parts


def _host_regions(found: dict[str, _Region], timeline: Timeline, mine: Regions, named: np.ndarray) -> bool:
    """Regions of host threads with the device events that have no scope of their own; says whether device time is known."""
    tree = mine.tree.clipped(timeline.window)
    inside = timeline.meets(mine.tree.start, mine.tree.end)
    length = len(mine.paths.parent)
    count, host, own = (np.zeros(length, np.int64) for _ in range(3))
    np.add.at(count, mine.paths.of[inside], 1)
    np.add.at(host, mine.paths.of[inside], (tree.end - tree.start)[inside])
    np.add.at(own, mine.paths.of[inside], tree.own_ns[inside])
    known = bool((timeline.device.launch >= 0).any() or named.any())
    exclusive = np.zeros(length, np.int64)
    outside = 0
    if known:
        working = timeline.inside.at[~named]
        of, duration = mine.of_device_work()[working], timeline.inside.duration[~named]
        np.add.at(exclusive, of[of >= 0], duration[of >= 0])
        lost = np.flatnonzero(of < 0)
        forward = mine.forward_of_device_work(working[lost])
        outside = int(duration[lost[forward < 0]].sum())
        _backward(found, mine, forward[forward >= 0], duration[lost[forward >= 0]])
    inclusive = mine.paths.rolled_up(exclusive)
    for path in np.flatnonzero((count > 0) | (inclusive > 0)).tolist():  # a host that runs ahead was there before the window
        region = found.setdefault(mine.text(path), _Region())
        region.count += int(count[path])
        region.inclusive += int(inclusive[path])
        region.exclusive += int(exclusive[path] if known else own[path])
        region.host = (region.host or 0) + int(host[path])
    if outside and found:
        region = found.setdefault(NO_REGION, _Region())
        region.inclusive += outside
        region.exclusive += outside
    return known and length > 0


def _backward(found: dict[str, _Region], mine: Regions, forward: np.ndarray, duration: np.ndarray) -> None:
    """Time of backward work, under `backward` and the path of its forward work."""
    for path in np.unique(forward).tolist():
        amount, count = int(duration[forward == path].sum()), int((forward == path).sum())
        texts, above = [], path
        while above >= 0:
            texts.append(f"{BACKWARD}{BETWEEN}{mine.text(above)}")
            above = int(mine.paths.parent[above])
        for place, text in enumerate([*texts, BACKWARD]):
            region = found.setdefault(text, _Region())
            region.inclusive += amount
            region.exclusive += amount if place == 0 else 0
            region.count += count


def _region_rows(rank: Rank) -> np.ndarray:
    """Annotations but for the profiler's step marks, calls of modules, and operator-like events that name a part of the program."""
    marks = rank.rows(Kind.ANNOTATION)
    marks = marks[~rank.trace.column("step").has(marks)]
    marks = marks[~rank.named(marks, lambda name: words.step_number(name) is not None)]
    frames = rank.rows(Kind.PYTHON)
    frames = frames[rank.named(frames, words.is_module_frame)]
    ops = rank.rows(Kind.HOST_OP)
    ops = ops[rank.named(ops, words.is_region)]
    return np.sort(np.concatenate((marks, frames, ops)))


def _one_name(rank: Rank, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(code of one name for each that differs by more than running numbers, which of them each row has)."""
    known, which = np.unique(codes, return_inverse=True)
    first: dict[str, int] = {}
    of = np.asarray([first.setdefault(words.without_numbers(rank.trace.strings[code]), place) for place, code in enumerate(known.tolist())])
    kept, number = np.unique(of, return_inverse=True)
    return known[kept], number[which]


def _readable(name: str) -> str:
    return name.removeprefix("nn.Module: ").strip("# ").strip() or name
