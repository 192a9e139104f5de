"""Timed runs must do the work of recorded ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from training_records import record

from trainflash.fidelity import compare, work


def steps(count: int = 40, **changes) -> work.Steps:
    plain = {"forwards": 1, "backwards": 1, "samples": 8, "elements": 64}
    return {(0, step): {**plain, "losses": [1.0 / (step + 1)], **(changes if step >= 20 else {})} for step in range(count)}


def test_equal_work_is_equal():
    found = work.compare(steps(), steps(), [(steps(), steps()), (steps(30), steps(30))], 1e-3)
    assert found.ok
    assert "70 steps of 2 timed starts" in found.evidence


@pytest.mark.parametrize("name", ["forwards", "backwards", "samples", "elements"])
def test_work_that_is_done_only_while_it_is_recorded_is_found(name):
    found = work.compare(steps(), steps(), [(steps(), steps(**{name: 0}))], 1e-3)
    assert found.ok is False
    assert f"step 21: {steps()[0, 0][name]} {name} when it is recorded, 0 when it is timed" in found.evidence


def test_other_losses_while_it_is_timed_are_found_unless_the_baseline_does_not_repeat_itself():
    assert work.compare(steps(), steps(), [(steps(), steps(losses=[0.5]))], 1e-3).ok is False
    restless = steps(losses=[0.9])
    assert work.compare(steps(), steps(), [(restless, steps(losses=[0.5]))], 1e-3).ok


def seeded(seed: int, mean: float = 0.7) -> work.Steps:
    """Losses of a program that seeds nothing: of other initial weights in each run."""
    return steps(losses=[mean]) | {(0, step): {**steps()[0, step], "losses": [mean + 0.01 * ((7 * seed) % 5 - 2)]} for step in range(20)}


def test_a_program_that_seeds_nothing_is_held_against_how_far_its_own_runs_are_apart():
    starts = [(seeded(number), seeded(number + 3)) for number in range(1, 5)]
    assert work.compare(seeded(0), seeded(2), starts, 1e-3).ok
    frozen = [(old, steps(losses=[0.0])) for old, _ in starts]
    found = work.compare(seeded(0), seeded(2), frozen, 1e-3)
    assert found.ok is False and "losses are" in found.evidence


def test_what_was_not_seen_is_not_the_same():
    assert work.compare(steps(), steps(), [], 1e-3).ok is None
    assert work.compare(steps(), steps(), [(steps(), steps(3))], 1e-3).ok is None
    assert work.compare({}, {}, [(steps(), steps())], 1e-3).ok is None
    assert work.compare(steps(), steps(), [(steps(samples=1), steps())], 1e-3).ok is None


def test_a_torn_line_is_left_out(tmp_path):
    line = json.dumps({"rank": 0, "step": 3, "forwards": 1, "samples": 2, "elements": 4, "backwards": 1, "losses": [(0.5).hex()]})
    (tmp_path / "work-1.jsonl").write_text(f"{line}\n{line[:30]}")
    assert work.read(tmp_path) == {(0, 3): {**json.loads(line), "losses": [0.5]}}
    assert work.read(None) == {}


def test_found_out_is_a_change_that_nobody_can_agree_to():
    same = compare(record(), record())
    found = work.applied(same, work.compare(steps(), steps(), [(steps(), steps(samples=1))], 1e-3))
    assert (found.verdict, found.changed) == ("changed", ("work",))
    assert work.applied(same, replace(found.checks[-1], ok=None)).not_judged == ("timed work",)
