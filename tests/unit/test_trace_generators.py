"""Work of generators that no bracket is around: samples say which part of a gap is Data."""

from __future__ import annotations

import pytest
from probe_events import MS, write_run

from trainflash.schema.runs import PHASES
from trainflash.trace import load

PLACES = [
    {"k": "place", "id": 1, "at": ["/home/me/project/train.py", 5, "stream"], "makes": True},
    {"k": "place", "id": 2, "at": ["/home/me/project/train.py", 9, "main"], "makes": False},
]


def step(at, gap, data=1.0):
    """A step whose gap before the batch takes `gap` ms, and `data` of Data in front of a forward of 2 and a backward of 1."""
    end = at + gap + data
    events = [(at, "step"), (at + gap, "Data"), (end, "/Data"), (end, "Fwd"), (end + 2, "/Fwd"), (end + 2, "Bwd"), (end + 3, "/Bwd")]
    return events if data else [event for event in events if not event[1].endswith("Data")]


def rank_of(directory, steps, samples, places=PLACES):
    at, events = 1.0, []
    for gap, data in steps:
        events += step(at, gap, data)
        at = events[-1][0]
    return load(write_run(directory, sorted([*events, (at, "step"), *samples]), facts=list(places))).ranks[0]


def ms(rank, name, at):
    return rank.phase_ns[name][at] / MS


def test_a_long_gap_is_judged_by_its_own_samples_and_the_usual_ones_stay(tmp_path):
    samples = [(10 + 20 * number, "sample_of+1") for number in range(4)] + [(90, "sample_of+2")]
    rank = rank_of(tmp_path, [(100, 1), (1, 1), (1, 1)], samples)
    assert (ms(rank, "Data", 1), ms(rank, "Other", 1)) == (pytest.approx(81), pytest.approx(20))
    assert [ms(rank, "Data", at) for at in (2, 3)] == [1, 1]
    assert len(rank.occurrences["Data"].start_ns) == 3  # made longer, not one more
    assert [PHASES[phase] for phase in rank.samples.phase] == ["Data"] * 4 + ["Other"]


def test_short_gaps_that_begin_alike_are_judged_together(tmp_path):
    starts = [1 + 11 * number for number in range(8)]
    samples = [(start + 4, f"sample_of+{1 if number % 4 else 2}") for number, start in enumerate(starts)]
    rank = rank_of(tmp_path, [(8, 0)] * 8, samples)
    assert [ms(rank, "Data", at) for at in range(1, 9)] == [pytest.approx(6)] * 8
    assert [ms(rank, "Other", at) for at in range(1, 9)] == [pytest.approx(2)] * 8
    assert (sum(rank.phase_ns.values()) == rank.wall_ns).all()


def test_without_such_samples_nothing_changes(tmp_path):
    plain = [{**place, "makes": False} for place in PLACES]
    rank = rank_of(tmp_path, [(100, 1), (1, 1)], [(10 + 20 * number, "sample_of+1") for number in range(4)], plain)
    assert ms(rank, "Other", 1) == 100
