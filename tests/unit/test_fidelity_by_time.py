"""A program whose length depends on time: no two of its runs are the same training, and that is said; chance is another thing."""

from __future__ import annotations

from dataclasses import replace

from training_records import check_of, record, stream, update

from trainflash.fidelity import compare
from trainflash.fidelity.judgement import ends_by_time


def run(updates: int, loss: float = 0.0, *, whole: bool = True):
    """So many updates of one training; `loss` is added to each."""
    made = [update(n) for n in range(1, updates + 1)]
    return record(stream([replace(each, losses=tuple(one + loss for one in each.losses)) for each in made]), whole=whole)


def test_equal_runs_of_other_lengths_depend_on_time():
    found = compare(run(40), run(44), rerun=run(41))
    assert found.verdict == "inconclusive" and not found.changed
    assert found.reasons[0].startswith("the program's length depends on time: it made 40 updates, and 41 when it was started again")
    assert "number of steps" in found.reasons[0]
    assert ends_by_time(run(40), run(41))


def test_the_same_length_by_luck_is_refused_with_a_hint():
    found = compare(run(40), run(44), rerun=run(40))
    assert (found.verdict, found.changed) == ("changed", ("updates",))
    assert "does its length depend on time?" in check_of(found, "updates").evidence
    assert check_of(found, "updates").counts == (40, 44)
    fewer = check_of(compare(run(40), run(30), rerun=run(40)), "updates")
    assert fewer.ok is False and "time" not in fewer.evidence, "a training that ends early is no matter of time"


def test_chance_and_cut_runs_are_not_time():
    assert not ends_by_time(run(40), run(41, loss=0.5)), "other losses: it draws what nobody seeds"
    assert not ends_by_time(run(40), run(41, whole=False)), "we stopped it"
    assert not ends_by_time(run(40), run(40))


def test_damage_does_not_hide_behind_time():
    found = compare(run(40), record(stream([replace(update(n), samples=1, multiset="x") for n in range(1, 45)])), rerun=run(41))
    assert found.verdict == "changed" and "updates" not in found.changed, found.reasons
