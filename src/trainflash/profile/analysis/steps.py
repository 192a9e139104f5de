"""Step times of all ranks: which steps are warm-up, how long the others take, and whether there are two kinds of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.figures import stats, us
from trainflash.profile.analysis.step_marks import RankSteps
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.view import WORKING, Rank, Work
from trainflash.profile.events import BUSY_KINDS, Kind
from trainflash.schema.profile_times import Basis, Step, StepClassSummary, StepTimeSummary

MOST_STEPS = 200


def window_of(rank: Rank, steps: RankSteps, warmup: int, limits: Thresholds = DEFAULT) -> tuple[int, int] | None:
    """What is analysed of a rank: its steady steps, else all that it did. None: nothing.

    Without steps, what the host does for a millisecond and more before the first work of the device is setting up, and behind the last
    it is the profiler's own end: the window lies between. A batch that is fetched before the first work belongs to it, a model that is
    brought to the device before it computes does not.
    """
    if len(steps) > warmup:
        return int(steps.start[warmup]), int(steps.end[-1])
    rows = rank.rows(*WORKING, *BUSY_KINDS, Kind.ANNOTATION, Kind.DEVICE_OP, Kind.DEVICE_MODULE)
    if not len(rows):
        rows = np.flatnonzero(rank.timed & (rank.trace.events.kind != Kind.SPAN))
    if not len(rows):
        return None
    begin, end = int(rank.start[rows].min()), int(rank.end[rows].max())
    if len(rank.device):
        at = _first_work(rank, limits)
        first, done = int(rank.device.start[at]), int(rank.device.end.max())
        launched = int(rank.device.launch_ns[at]) if rank.device.by_call[at] else first
        begin = begin if first - begin < limits.one_off_ns else launched if 0 <= first - launched < limits.one_off_ns else first
        fetching = rank.rows(Kind.HOST_OP, Kind.ANNOTATION, Kind.PYTHON)
        fetching = rank.start[fetching[rank.named(fetching, words.is_loading)]]
        begin = min(begin, int(fetching.min())) if len(fetching) else begin
        end = end if end - done < limits.one_off_ns else done
    return begin, end


def _first_work(rank: Rank, limits: Thresholds) -> int:
    """Index of the device's first work, without the copies of a model's parameters, one by one, that nothing like them follows."""
    device = rank.device
    computing = np.flatnonzero(device.work == Work.COMPUTE)
    at = int(computing[0]) if len(computing) else 0
    copying = np.where(device.work == Work.COPY, device.end - device.start, 0)
    ahead, behind = copying[:at], copying[at:]
    model = np.count_nonzero(ahead) >= limits.parameters and ahead.sum() >= limits.one_off_ns
    return at if model and behind.sum() <= limits.recurring * ahead.sum() else 0


def warmup_steps(durations: Sequence[np.ndarray], asked: int | None, limits: Thresholds = DEFAULT) -> int:
    """How many leading steps to leave out: `asked`, or those that take longer than usual; the same number on every rank."""
    shortest = min((len(each) for each in durations), default=0)
    if asked is not None:
        return min(asked, max(shortest - 1, 0))
    if shortest < 3:
        return 0
    slowest = np.max(np.stack([each[:shortest] for each in durations]), axis=0)
    most = int(shortest * limits.warmup_most)
    dropped = 0
    while dropped < most and slowest[dropped] > limits.warmup_over * float(np.median(slowest[dropped + 1 :])):
        dropped += 1
    return dropped


def step_time(ranks: Sequence[tuple[int, RankSteps]], warmup: int, loading_ns: int | None, limits: Thresholds = DEFAULT) -> StepTimeSummary:
    """Step times of the job: a step takes as long as its slowest rank. `loading_ns`: idle time in data loading over all steady steps."""
    slowest = _slowest([(rank, steps) for rank, steps in ranks if len(steps)])
    durations = np.asarray([duration for _, duration, _ in slowest], np.int64)
    steady = durations[warmup:]
    several = sum(1 for _, steps in ranks if len(steps)) > 1
    basis: Basis = next((steps.basis for _, steps in ranks if len(steps)), "none")
    return StepTimeSummary(
        warmup_steps_ignored=min(warmup, len(durations)),
        all_steps=stats(durations),
        steady_state_steps=stats(steady),
        classes=classes([number for number, _, _ in slowest[warmup:]], steady, limits),
        basis=basis,
        steps=tuple(
            Step(number, us(duration), place < warmup, rank if several else None)
            for place, (number, duration, rank) in enumerate(slowest[:MOST_STEPS])
        ),
        data_loading_mean_us=None if loading_ns is None or not len(steady) else us(loading_ns / len(steady)),
    )


def classes(numbers: Sequence[int], durations: np.ndarray, limits: Thresholds = DEFAULT) -> tuple[StepClassSummary, ...]:
    """Light and heavy steps, where the durations fall into two groups far enough apart; else none."""
    if len(durations) < limits.class_steps:
        return ()
    ordered = np.sort(durations).astype(float)
    total = float(((ordered - ordered.mean()) ** 2).sum())
    if total <= 0:
        return ()
    split, explained = 0, 0.0
    for place in range(2, len(ordered) - 1):  # at least two steps on each side
        low, high = ordered[:place], ordered[place:]
        within = float(((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum())
        if 1 - within / total > explained:
            split, explained = place, 1 - within / total
    if not split or explained < limits.class_explained:
        return ()
    low, high = ordered[:split], ordered[split:]
    if high.mean() < limits.class_ratio * low.mean() or high[0] < limits.class_ratio**0.5 * low[-1]:
        return ()
    edge = (low[-1] + high[0]) / 2
    return (_class("light", numbers, durations, durations <= edge), _class("heavy", numbers, durations, durations > edge))


def _class(name: Literal["light", "heavy"], numbers: Sequence[int], durations: np.ndarray, mine: np.ndarray) -> StepClassSummary:
    places = np.flatnonzero(mine)
    middle = np.median(durations[places])
    typical = int(places[np.argmin(np.abs(durations[places] - middle))])
    apart = np.unique(np.diff(np.asarray(numbers)[places]))
    return StepClassSummary(
        name=name,
        count=len(places),
        fraction_of_steady=round(len(places) / len(durations), 6),
        duration_stats=stats(durations[places]),
        representative_step=int(numbers[typical]),
        representative_duration=us(durations[typical]),
        periodicity=int(apart[0]) if len(apart) == 1 else None,
    )


def numbered_apart(ranks: Sequence[RankSteps]) -> bool:
    """Whether ranks that have steps have no step number in common."""
    there = [set(steps.number.tolist()) for steps in ranks if len(steps)]
    return len(there) > 1 and not set.intersection(*there)


def _slowest(ranks: Sequence[tuple[int, RankSteps]]) -> list[tuple[int, int, int]]:
    """(number, duration, rank) of the slowest rank of each step that all have; by place where they have no number in common."""
    if not ranks:
        return []
    if numbered_apart([steps for _, steps in ranks]):
        shortest = min(len(steps) for _, steps in ranks)
        number = ranks[0][1].number[:shortest]
        ranks = [(rank, replace(steps, number=number, start=steps.start[:shortest], end=steps.end[:shortest])) for rank, steps in ranks]
    by_rank = [(rank, dict(zip(steps.number.tolist(), steps.duration.tolist(), strict=True))) for rank, steps in ranks]
    found = []
    for number in sorted(set.intersection(*(set(durations) for _, durations in by_rank))):
        duration, rank = max((durations[number], -rank) for rank, durations in by_rank)
        found.append((number, duration, -rank))
    return found
