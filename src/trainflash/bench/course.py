"""How the steps of both sides change along a run, from windows laid over it. Early steps alone never speak for a run."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainflash import stats
from trainflash.schema import RunPart, Side, Start

PARTS = 8  # of the steps that were seen
LEVEL = 0.9995  # one-sided, of the two parts that differ most of 28 pairs, in up to six readings
CHANGED = 0.1  # own: of a side's step between two parts; less is what a machine's own drift makes
GAIN_CHANGED = 0.05  # own: of the factor between the sides, which drift hits alike
SEEN = 0.98  # own: of the run's steps, for what was seen to be the run
KNOWN = 0.25  # own: a change of the factor that would have been seen; with more noise another start looks as far
MOST_LOOKS = 2  # so many starts look, where no change was seen
SIDES: tuple[Side, Side] = ("baseline", "candidate")


@dataclass(frozen=True)
class Course:
    """`parts`: equal stretches of the steps that were seen. What changes does so by more than noise and the bounds above."""

    parts: tuple[RunPart, ...]
    changing: frozenset[Side]  # sides whose own steps change; by CPU time, or else net of waits for a core
    slower: frozenset[Side]  # … and are slower in the last part than in the fastest
    gain_changes: bool
    gain_falls: bool  # the factor is lower in the last part than in the best
    gain_rises: bool
    resolution: float  # a change of the factor by so much would have been seen
    looks: int

    @property
    def first(self) -> int:
        return self.parts[0].first

    @property
    def last(self) -> int:
        return self.parts[-1].last

    @property
    def changes(self) -> bool:
        return bool(self.changing) or self.gain_changes

    @property
    def known(self) -> bool:
        """Whether the rest of the run may be left to its first steps: they do not change, as far as another look could show."""
        return not self.changes and (self.resolution <= KNOWN or self.looks >= MOST_LOOKS)

    def covers(self, steps: int | None) -> bool:
        """Whether these are the steps of the whole run."""
        return steps is not None and self.last >= SEEN * steps

    def going_on(self, steps: int) -> float:
        """The factor of all `steps` if both sides went on as straight lines: no claim, but what a claim must not contradict."""
        lines = [_line([(_middle(part), _ms(part, side)) for part in self.parts]) for side in SIDES]
        seen = [sum(_ms(part, side) * (part.last - part.first) for part in self.parts) for side in SIDES]
        rest = range(self.last, steps, max(1, (steps - self.last) // 100))
        ours, theirs = (
            total + sum(max(_ms(self.parts[-1], side) / 10, line(step)) * rest.step for step in rest)
            for side, total, line in zip(SIDES, seen, lines, strict=True)
        )
        return ours / theirs


def of_starts(starts: Sequence[Start], lines: Sequence[Mapping[str, Any]]) -> Course | None:
    """From the rows kept of the starts that count (see `spans.rows`); of those that saw most of the run. None: there are none."""
    by_number = _by_number(lines)
    seen = [(by_number[start.n], start) for start in starts if start.y is not None and start.n in by_number]
    looks = sum(start.last_step is not None for _, start in seen)
    if not seen:
        return None
    last = common_last(start for _, start in seen) or max(rows[-1][0] + rows[-1][1] for rows, _ in seen)
    alike = [(_up_to(rows, last), start) for rows, start in seen if not looks or (start.last_step or 0) >= last]
    first = min(rows[0][0] for rows, _ in alike)
    edges = [first + round(part * (last - first) / PARTS) for part in range(PARTS + 1)]
    ratios = [_Reading.of([rows for rows, _ in alike], edges, lambda row, at=at: math.log(row[at] / row[at + 1])) for at in (2, 4)]
    changing, slower = set(), set()
    for number, side in enumerate(SIDES):
        own = [reading.change(CHANGED) for reading in _own(alike, edges, number)]
        changing |= {side} if any(own) else set()
        slower |= {side} if any(change is not None and change.rises for change in own) else set()
    gain = [change for reading in ratios if (change := reading.change(GAIN_CHANGED)) is not None]
    return Course(
        parts=_parts([rows for rows, _ in alike], edges),
        changing=frozenset(changing),
        slower=frozenset(slower),
        gain_changes=bool(gain),
        gain_falls=any(change.falls for change in gain),
        gain_rises=any(change.rises for change in gain),
        resolution=min(math.expm1(min(50.0, max(GAIN_CHANGED, reading.resolution()))) for reading in ratios),
        looks=looks,
    )


def said(course: Course, steps: int | None) -> str:
    """What the steps that were seen show of the run."""
    seen = f"steps {course.first:,} to {course.last:,}" + (f" of {steps:,}" if steps is not None else "")
    if not course.changes:
        hidden = f" (the factor changes by less than {course.resolution:.0%})" if course.resolution <= KNOWN else ", in much noise"
        return f"from {seen}; no trend seen{hidden}"
    told = [f"the {side}'s go from {_ms(course.parts[0], side):.3g} to {_ms(course.parts[-1], side):.3g} ms" for side in SIDES]
    begin, end = course.parts[0].speedup, course.parts[-1].speedup
    return f"from {seen}; {' and '.join(told)}, {begin:.2f} times as fast at first and {end:.2f} at last"


def over_the_run(starts: Sequence[Start], lines: Sequence[Mapping[str, Any]]) -> list[Start]:
    """Starts as they count where steps change: by all steps up to one that most of them saw. Those that did not see it do not count.

    Where none could look along the run all count as they are.
    """
    by_number = _by_number(lines)
    last = common_last(starts)
    return [_over(start, by_number.get(start.n, ()), last) for start in starts] if last else list(starts)


def common_last(starts: Iterable[Start]) -> int:
    """The last step that two thirds of the starts that looked along the run saw, and as many as a verdict takes; 0: none looked."""
    lasts = sorted((start.last_step for start in starts if start.y is not None and start.last_step is not None), reverse=True)
    return lasts[min(len(lasts), max(stats.LEAST_STARTS, math.ceil(2 * len(lasts) / 3))) - 1] if lasts else 0


def _over(start: Start, rows: Sequence[Any], last: int) -> Start:
    if start.y is None:
        return start
    if start.last_step is None or start.y_run is None or start.last_step < last or not rows:
        return replace(start, y=None, y_wall=None, reason="the steps change, and it timed only the first of them")
    y = start.y_run
    if last < SEEN * start.last_step:
        y = math.log(_until(rows, 2, last) / _until(rows, 3, last))
    return replace(start, y=y, y_wall=start.y_run_wall, scatter=start.scatter_run)


def _until(rows: Sequence[Any], column: int, last: int) -> float:
    """Milliseconds of all steps up to `last`; steps between two rows as these are in the mean."""
    total, at, before = 0.0, rows[0][0], rows[0][column]
    for first, steps, *values in rows:
        mean = values[column - 2]
        gap = min(first, last) - at
        total += max(0, gap) * (before + mean) / 2 + max(0, min(first + steps, last) - max(first, at)) * mean
        at, before = first + steps, mean
    return total


def _by_number(lines: Sequence[Mapping[str, Any]]) -> dict[int, Any]:
    return {line["n"]: line["course"] for line in lines if line.get("course")}


@dataclass(frozen=True)
class _Change:
    rises: bool  # the last part is surely above the lowest
    falls: bool  # … below the highest


@dataclass(frozen=True)
class _Reading:
    """One reading of all rows, in log units: its mean in each part, how many rows that has, and the noise of a row.

    Rows of one start are no independent samples: a machine drifts. From two starts on, what they differ by in a part is the noise, too.
    """

    means: Mapping[int, float]
    counts: Mapping[int, int]
    noise: float
    freedom: int
    starts: int
    between: float  # standard deviation of a part's mean from start to start
    between_freedom: int

    @classmethod
    def of(cls, starts: Sequence[Sequence[Any]], edges: Sequence[int], value: Any) -> _Reading:
        inside: dict[int, list[float]] = {}
        squares, freedom = 0.0, 0
        shapes: list[dict[int, float]] = []
        for rows in starts:
            own: dict[int, list[float]] = {}
            for row in rows:
                own.setdefault(_part_of(row, edges), []).append(value(row))
            level = statistics.fmean(statistics.fmean(values) for values in own.values())  # what stays for the life of a process
            shapes.append({part: statistics.fmean(values) - level for part, values in own.items()})
            for part, values in own.items():
                inside.setdefault(part, []).extend(each - level for each in values)
                squares += sum((each - statistics.fmean(values)) ** 2 for each in values)
                freedom += len(values) - 1
        means = {part: statistics.fmean(values) for part, values in sorted(inside.items())}
        counts = {part: len(values) for part, values in inside.items()}
        common = [part for part in means if all(part in shape for shape in shapes)]
        between_freedom = (len(starts) - 1) * (len(common) - 1)
        apart = [shape[part] - statistics.fmean(each[part] for each in shapes) for shape in shapes for part in common]
        between = math.sqrt(sum(each * each for each in apart) / between_freedom) if between_freedom > 0 else 0.0
        noise = math.sqrt(squares / freedom) if freedom else math.inf
        return cls(means, counts, noise, freedom, len(starts), between, between_freedom)

    def change(self, least: float) -> _Change | None:
        """None where no two parts differ by more than noise and `least`."""
        sure = {
            (a, b)
            for a, b in itertools.permutations(self.means, 2)
            if self.means[b] - self.means[a] > max(math.log1p(least), self._noise(a, b))
        }
        last = max(self.means)
        return _Change(any(b == last for _, b in sure), any(a == last for a, _ in sure)) if sure else None

    def resolution(self) -> float:
        """The difference of two parts that is surely more than noise, log units."""
        few = sorted(self.means, key=lambda part: self.counts[part])[:2]
        return self._noise(*few) if len(few) == 2 else math.inf

    def _noise(self, a: int, b: int) -> float:
        if self.freedom < 4:
            return math.inf
        within = stats.t_quantile(LEVEL, self.freedom) * self.noise * math.sqrt(1 / self.counts[a] + 1 / self.counts[b])
        if self.between_freedom < 1:
            return within
        return max(within, stats.t_quantile(LEVEL, self.between_freedom) * self.between * math.sqrt(2 / self.starts))


def _own(alike: Sequence[tuple[Sequence[Any], Start]], edges: Sequence[int], number: int) -> Iterable[_Reading]:
    """Readings of one side's own time: CPU time, which a machine's load moves least, or else time net of waits for a core, or none."""
    rows = [rows for rows, _ in alike]
    known = [[row for row in each if row[6 + number]] for each in rows]
    if all(2 * len(some) > len(each) for some, each in zip(known, rows, strict=True)):
        yield _Reading.of(known, edges, lambda row: math.log(row[6 + number]))
    elif all(start.clock == "net" for _, start in alike):
        for column in (2 + number, 4 + number):
            yield _Reading.of(rows, edges, lambda row, at=column: math.log(row[at]))


def _up_to(rows: Sequence[Any], last: int) -> list[Any]:
    return [row for row in rows if row[0] + row[1] / 2 <= last]


def _parts(starts: Sequence[Sequence[Any]], edges: Sequence[int]) -> tuple[RunPart, ...]:
    inside: dict[int, list[Any]] = {}
    for rows in starts:
        for row in rows:
            inside.setdefault(_part_of(row, edges), []).append(row)
    found = []
    for part, rows in sorted(inside.items()):
        steps = sum(row[1] for row in rows)
        ours, theirs = (sum(row[at] * row[1] for row in rows) / steps for at in (2, 3))
        found.append(RunPart(edges[part], edges[part + 1], ours, theirs, ours / theirs))
    return tuple(found)


def _part_of(row: Sequence[Any], edges: Sequence[int]) -> int:
    middle = row[0] + row[1] / 2
    return min(len(edges) - 2, max(0, sum(middle >= edge for edge in edges[1:-1])))


def _ms(part: RunPart, side: Side) -> float:
    return part.baseline_ms if side == "baseline" else part.candidate_ms


def _middle(part: RunPart) -> float:
    return (part.first + part.last) / 2


def _line(points: Sequence[tuple[float, float]]) -> Any:
    """The straight line through `points` by Theil and Sen."""
    slope = statistics.median((y - x) / (b - a) for (a, x), (b, y) in itertools.combinations(points, 2)) if len(points) > 1 else 0.0
    level = statistics.median(y - slope * at for at, y in points)
    return lambda step: level + slope * step
