"""What a check of the training may cost: planned from the budget, paid run by run, and said when it does not suffice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from training_records import record, rounded, short, stream, update

from trainflash.fidelity import trial
from trainflash.fidelity.attempt import Bounds, OutOfTime, Starter
from trainflash.fidelity.judgement import compare
from trainflash.fidelity.record import Record
from trainflash.fidelity.reuse import Run
from trainflash.schema import Command

COMMAND = Command(("python", "train.py"))


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("budget_s", [20.0, 60.0, 150.0, 240.0, 600.0, 1200.0, 3600.0, 4 * 3600.0])
def test_half_of_every_budget_belongs_to_the_timing(budget_s):
    bounds = Bounds.within(budget_s, starts=4)
    assert bounds.total_s == budget_s / 2 and bounds.first_update_s <= bounds.total_s
    assert bounds.whole_s <= bounds.most_s <= max(20.0, bounds.total_s / 2)
    if budget_s >= 160:  # the pair, the baseline again and nudged, a restart and the changed lines
        assert 4 * bounds.most_s <= bounds.total_s


def test_more_time_makes_longer_records_but_never_wastes_a_large_budget():
    plans = [Bounds.within(budget_s, 4).most_s for budget_s in (60, 240, 600, 1200, 3600, 7200)]
    assert plans == sorted(plans) and plans[3] == 75.0 and plans[-1] <= 300.0


def starter(clock: Clock, budget_s: float = 240.0) -> Starter:
    return Starter(None, None, Bounds.within(budget_s, starts=4), None, False, (), None, clock=clock)


def test_a_run_is_started_only_if_it_can_be_paid():
    clock = Clock()
    ours = starter(clock)
    ours.afford("the baseline again", 100.0)
    clock.now = 80.0
    ours.afford("the baseline again", 40.0)
    with pytest.raises(OutOfTime, match=r"the baseline again takes about 100 s, and 40 of the 120 s are left .* give --budget 6m or more"):
        ours.afford("the baseline again", 100.0)


def test_what_still_runs_when_the_time_is_over_ends_there():
    clock, running = Clock(), SimpleNamespace(running=lambda: True, name="rerun", record=short(1), seconds=50.0)
    over = SimpleNamespace(running=lambda: False)
    ours = starter(clock)
    ours.expire([running])
    clock.now = 120.5
    ours.expire([over])
    none = SimpleNamespace(running=lambda: True, name="baseline", record=Record(()), seconds=120.0)
    with pytest.raises(OutOfTime, match=r"baseline made no update in 120 s \(an optimizer's step"):
        ours.expire([none])
    with pytest.raises(OutOfTime, match="rerun had made 1 updates in 50 s when the 120 s of the check were over: give --budget 8m"):
        ours.expire([over, running])


def test_a_budget_too_small_for_the_starts_is_said_after_the_first_pair():
    clock = Clock()
    ours = starter(clock)
    clock.now = 90.0
    ours.afford_starts(None)  # recorded earlier: nobody knows
    ours.afford_starts(50.0)
    with pytest.raises(OutOfTime, match="4 starts of both sides take at least 168 s, and 150 s of the budget are left: give --budget 6m"):
        ours.afford_starts(60.0)


def judged(monkeypatch, clock: Clock, first_s: float | None, seconds: float = 40.0):
    """A trial whose two sides are known, and round otherwise: it wants the baseline again, and nudged."""
    ours, theirs = record(), rounded(1e-7, 1e-7)
    sides = trial._Sides(Run(ours, seconds, Path(), None), Run(theirs, seconds, Path(), None), False, None, first_s)
    monkeypatch.setattr(trial._Trial, "_together", lambda self: sides)
    monkeypatch.setattr(trial._Trial, "_apart", lambda self: False)
    monkeypatch.setattr(trial.reuse, "load", lambda *_, **__: {})
    made = trial._Trial(starter(clock), COMMAND, COMMAND, Path(), Path(), None, None, 1e-3, frozenset(), None, None, False)
    assert compare(ours, theirs).verdict != "same"
    return made.verdict()


def test_a_check_that_cannot_come_to_its_end_is_inconclusive_and_says_what_it_takes(monkeypatch):
    monkeypatch.setattr(trial.Starter, "start", lambda *_, **__: pytest.fail("what cannot be paid was started"))
    monkeypatch.setattr(trial.Starter, "left_s", property(lambda self: 15.0))
    found = judged(monkeypatch, Clock(), None)
    assert (found.verdict, found.changed) == ("inconclusive", ())
    assert "training the baseline again (rerun, nudged) takes about 40 s, and 15 of the 120 s are left" in found.reasons[0]
    assert "give --budget" in found.reasons[0] and found.updates == 30, "what was compared is still told"


def test_slow_starts_end_it_before_anything_is_made_again(monkeypatch):
    monkeypatch.setattr(trial.Starter, "start", lambda *_, **__: pytest.fail("started"))
    found = judged(monkeypatch, Clock(), 100.0)
    assert found.verdict == "inconclusive" and "4 starts of both sides take at least 280 s" in found.reasons[0]


@pytest.mark.parametrize(
    ("seconds", "budget_s", "counts"),
    [
        (20.0, 160.0, True),  # as long as it may be now
        (20.0, 200.0, True),  # little more would not show more
        (20.0, 600.0, False),  # with so much more time it is made longer
        (75.0, 1200.0, True),
    ],
)
def test_a_record_that_is_too_short_is_made_longer_where_the_budget_allows(seconds, budget_s, counts):
    few = replace(short(3), whole=False)
    made = trial._Trial(starter(Clock(), budget_s), COMMAND, COMMAND, Path(), Path(), None, None, 1e-3, frozenset(), None, None, False)
    assert made._enough_kept(Run(few, seconds, Path(), None)) is counts
    assert made._enough_kept(Run(replace(few, whole=True), seconds, Path(), None)), "there is no more of it"


def test_only_what_an_agreement_would_mend_is_compared_as_if_it_were_given():
    offered = frozenset({"order", "batch"})
    found = compare(record(), record())

    def presumed(*changed: str, agreed: frozenset[str] = frozenset(), verdict: str = "changed") -> set[str]:
        return set(trial._presumed(replace(found, verdict=verdict, changed=changed), agreed, offered))

    assert presumed("order", "numerics") == {"order"}
    assert presumed("order", "batch", agreed=frozenset({"order"})) == {"batch"}
    assert presumed("order", agreed=frozenset({"order"})) == set(), "it ends"
    assert presumed("order", "samples") == presumed("order", "failed") == presumed("order", verdict="inconclusive") == set()


def within_an_epoch(code: str, updates: int = 9) -> Record:
    """A program cut before, or after, the end of its first epoch, whose batches are made by `code` and draw from torch's stream."""
    seen = [update(n, keys=tuple(f"s{n}-{k}" for k in range(4))) for n in range(1, updates + 1)]
    return record(stream(seen, making=frozenset({code}), draws=frozenset({"torch"})), whole=False)


def test_a_pair_that_tells_nothing_before_a_second_epoch_is_given_the_time_for_it():
    made = trial._Trial(starter(Clock(), 600.0), COMMAND, COMMAND, Path(), Path(), None, None, 1e-3, frozenset(), None, None, False)

    def wanted(seconds: float, ours: Record, theirs: Record) -> bool:
        old = SimpleNamespace(seconds=seconds, due=lambda: True, record=ours)
        return made._epoch_wanted(old, SimpleNamespace(failed=False, record=theirs))

    cached, drawn = within_an_epoch("cached"), within_an_epoch("drawn")
    assert made.starter.bounds.most_s == 60.0 and wanted(61.0, drawn, cached)
    assert not wanted(121.0, drawn, cached), "the rest is for what follows"
    assert not wanted(61.0, drawn, drawn), "batches are made as before"
    assert not wanted(61.0, within_an_epoch("drawn", 21), within_an_epoch("cached", 21)), "a second epoch was seen"
