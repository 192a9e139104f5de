"""Start after start on a clock that stands: a budget is kept, and what cannot be is said after the first pair."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from trainflash.bench import comparison
from trainflash.bench.paced import StartFailed
from trainflash.schema import Command, Start

COMMAND = Command(("python", "train.py"))
Y = 0.2


@pytest.fixture
def compared(monkeypatch, tmp_path):
    """A comparison whose starts take the seconds that it is given; None: one that never comes back."""

    def run(budget_s: float, *costs: float | None, rows: list | None = None):
        now, left = [1000.0], list(costs)

        def resident(bench, n, plan, on_slice):
            cost = left.pop(0)
            ends = bench.deadline if cost is None else now[0] + cost
            now[0] = min(ends, bench.deadline)
            if cost is None or ends > bench.deadline:
                raise StartFailed("candidate", "silent", "the candidate was still busy when the budget was over")
            side = SimpleNamespace(early=[SimpleNamespace(ended=False)])
            return {"baseline": side, "candidate": side}, plan

        def estimate(n, schedule, ours, theirs, *, spent_s, even_slices, whole_cycles):
            return Start(n, schedule, Y + 0.001 * n, Y, "net", steps=240, spent_s=spent_s), 5

        monkeypatch.setattr(comparison, "time", SimpleNamespace(monotonic=lambda: now[0]))
        monkeypatch.setattr("trainflash.bench.paced.time", SimpleNamespace(monotonic=lambda: now[0]))
        monkeypatch.setattr(comparison.measure, "resident", resident)
        monkeypatch.setattr(comparison, "estimate", estimate)
        monkeypatch.setattr(comparison, "step_profile", lambda *_: (0, [1.0]))
        monkeypatch.setattr(comparison.measure, "interruptions", lambda *_: None)
        seen = {"last_step": rows[-1][0] + rows[-1][1], "y_run": -Y, "y_run_wall": -Y} if rows else {}
        monkeypatch.setattr(comparison.spans, "extended", lambda start, *_: replace(start, **seen))
        monkeypatch.setattr(comparison.spans, "rows", lambda *_: rows or [])
        monkeypatch.setattr(comparison._Comparison, "_refuse_unlike", lambda *_: None)
        monkeypatch.setattr(comparison.launch.daemons, "of", lambda *_: "")
        runs, verdict = comparison.compare(None, COMMAND, COMMAND, tmp_path / f"{budget_s}-{costs}", budget_s=budget_s)
        return verdict, len(runs.starts), now[0] - 1000.0

    return run


def test_a_budget_that_buys_no_verdict_ends_after_the_first_pair(compared):
    verdict, starts, spent_s = compared(100.0, 40.0)
    assert (verdict.decision, starts, spent_s) == ("inconclusive", 1, 40.0)
    assert "4 starts take about 3 min: give --budget more than that" in verdict.reason


def test_a_budget_that_buys_one_is_kept(compared):
    verdict, starts, spent_s = compared(170.0, 40.0, 40.0, 41.0, 42.0)
    assert (verdict.decision, starts, spent_s) == ("accept", 4, 163.0)


def test_where_steps_change_all_that_were_seen_are_judged_and_not_the_first(compared):
    """The candidate is faster in its first steps, `Y`, and slower over all that were seen."""
    rows = [(5 + 50 * at, 20, 8.0, 6.0 + at / 3, 8.0, 6.0 + at / 3, 8.0, 6.0 + at / 3) for at in range(24)]
    verdict, _, _ = compared(300.0, *[20.0] * 8, rows=rows)
    assert verdict.decision == "reject"
    assert verdict.speedup.mean < 1


@pytest.mark.parametrize("costs", [(40.0, 40.0, 40.0, 500.0), (40.0, 40.0, 40.0, None), (None,), (40.0, 90.0, 30.0)])
def test_a_start_that_takes_longer_than_any_ends_with_the_budget(compared, costs):
    verdict, _, spent_s = compared(170.0, *costs)
    assert verdict.decision == "inconclusive" and spent_s <= comparison.GRACE * 170.0
    assert verdict.reason
