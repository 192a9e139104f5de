"""The same collectives of several ranks where they have no numbers: one was lost, or clocks differ, or both."""

from __future__ import annotations

import pytest
from profile_scenarios import flat, launched, ranks

from trainflash.profile.analysis.build import summarize

PERIOD = 1000


def rank(numbers, *, clock=0.0, late=0.0, lengths=(900, 300), jitter=0.0):
    """All-reduces of these numbers, one a millisecond; even and odd ones take different times."""
    events = []
    for number in numbers:
        at, length = 10_000 + PERIOD * number + clock, lengths[number % len(lengths)]
        events.append(
            launched("ncclDevKernel_AllReduce", at + late - 10, at + late, length - late + jitter * (number % 3), number + 1, stream="20")
        )
    return flat(*events)


def without(*lost, count=20):
    return [number for number in range(count) if number not in lost]


@pytest.mark.parametrize("lost", [(10,), (0,), (19,), (5, 6, 14), (3, 9, 15)])
@pytest.mark.parametrize("clock", [0, -400, -700, 5_000_000])
def test_a_lost_collective_shifts_none_of_the_others(lost, clock):
    found = summarize(ranks(rank(range(20)), rank(without(*lost), clock=clock, late=100, jitter=2)))
    here = 20 - len(lost)
    assert found.alignment.collectives == here and found.alignment.unmatched == len(lost)
    assert found.alignment.waiting_us == pytest.approx(100 * here, abs=4 * here)
    assert found.ranks[1].waiting_us <= 4 * here and [each.rank for each in found.alignment.stragglers] == [1]


def test_each_rank_lost_another_one():
    found = summarize(ranks(rank(without(4)), rank(without(11), late=100), rank(without(17))))
    assert found.alignment.collectives == 17 and found.alignment.unmatched == 2 * 3
    assert found.alignment.waiting_us == 2 * 17 * 100 and found.ranks[1].last_to_arrive == 17


@pytest.mark.parametrize("clock", [0, -400, -700, 900])
def test_a_clock_that_differs_and_one_more_collective(clock):
    found = summarize(ranks(rank(range(10)), rank(range(1, 10), clock=clock))).alignment
    assert found.collectives == 9 and found.unmatched == 1 and found.waiting_us == 0
    assert found.clock == ("aligned" if clock == 0 else "shifted")


def test_ends_that_never_coincide_are_taken_in_order():
    """Nothing but the order tells which is which: as many on both sides, of the same kinds."""
    drifting = [
        launched("ncclDevKernel_AllReduce", at - 10, at, 300, number, stream="20") for number, at in enumerate(range(9000, 99_000, 9000))
    ]
    found = summarize(ranks(rank(range(10)), flat(*drifting))).alignment
    assert found.collectives == 10 and found.unmatched == 0 and found.clock == "unknown"
