"""What a candidate costs beside the time of a step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainflash import bench
from trainflash.schema import Speedup, SpeedVerdict, Start


def lead_starts(later_s: float, gain_ms: float) -> list[Start]:
    return [
        Start(
            n, "resident", 0.3, 0.3, "net", baseline_step_ms=10.0 + gain_ms, candidate_step_ms=10.0,
            baseline_lead_s=4.0, candidate_lead_s=4.0 + later_s + 0.01 * n,
        )
        for n in range(4)
    ]  # fmt: skip


FASTER = SpeedVerdict("accept", Speedup(1.35, 1.3, 1.4, 4), "1.35 times as fast")


@pytest.mark.parametrize(
    ("later_s", "steps", "decision", "said"),
    [
        (6.0, 1000, "reject", "more than the run wins back"),
        (6.0, 2000, "accept", "won that back after 1,203 steps"),
        (6.0, None, "accept", "won that back after 1,203 steps"),
        (-1.0, 10, "accept", "1.35 times as fast"),
    ],
)
def test_what_is_lost_before_the_timed_steps_must_be_earned_back(later_s, steps, decision, said):
    weighed = bench.with_costs(FASTER, lead_starts(later_s, gain_ms=5.0), bench.OwnersRun(steps))
    assert weighed.decision == decision
    assert said in weighed.reason


def test_a_lead_within_the_noise_is_not_held_against_anybody():
    noisy = [replace(start, candidate_lead_s=4.0 + lead) for start, lead in zip(lead_starts(0.0, 5.0), (3.0, -2.5, 1.0, -1.0), strict=True)]
    assert bench.with_costs(FASTER, noisy, bench.OwnersRun()).whole_run.lost_s == 0.0
    assert bench.with_costs(FASTER, noisy, bench.OwnersRun(10)).decision == "accept"


def test_the_whole_run_is_weighed_beside_the_step():
    """1,000 steps of 15 against 10 ms after 4 s of start-up: 19 s against 14 s; and 6 s of evaluations that no step showed."""
    whole = bench.with_costs(FASTER, lead_starts(0.0, 5.0), bench.OwnersRun(1000)).whole_run
    assert whole.speedup == pytest.approx(19 / 14, rel=2e-3)
    starts = [replace(start, steps=240) for start in lead_starts(0.0, 5.0)]
    rarely = bench.with_costs(FASTER, starts, bench.OwnersRun(1000, {"evaluations": (500.0, 6.0), "checkpoints": (100.0, 3.0)}))
    assert rarely.whole_run.speedup == pytest.approx(25 / 20, rel=2e-3)
    assert "judged by the step" in rarely.reason
    assert "with evaluations as before" in rarely.reason, "checkpoints were in the timed steps"
    unknown = bench.with_costs(FASTER, lead_starts(0.0, 5.0), bench.OwnersRun())
    assert unknown.whole_run.speedup is None
    assert "is not known" in unknown.reason


def test_a_step_of_twice_the_samples_weighs_half_in_the_run():
    doubled = bench.with_costs(FASTER, lead_starts(0.0, 5.0), bench.OwnersRun(1000), work_ratio=2.0)
    assert doubled.whole_run.speedup == pytest.approx(19 / 9, rel=2e-3)


def costly(**fields):
    return [replace(start, steps=100, **fields) for start in lead_starts(0.0, 5.0)]


def test_more_memory_and_cpu_time_are_said_and_forbid_nothing():
    doubled = bench.with_costs(
        FASTER,
        costly(baseline_peak_mb=300.0, candidate_peak_mb=640.0, baseline_cpu_s=1.0, candidate_cpu_s=2.0),
        bench.OwnersRun(),
    )
    assert doubled.decision == "accept"
    assert "2.1 times the host memory: 640 instead of 300 MB" in doubled.reason
    assert "2.0 times the CPU time: 20 instead of 10 ms a step" in doubled.reason
    assert doubled.resources.candidate_peak_mb == 640.0


@pytest.mark.parametrize(
    "fields",
    [
        {"baseline_peak_mb": 300.0, "candidate_peak_mb": 340.0},
        {"baseline_peak_mb": 20.0, "candidate_peak_mb": 60.0},
        {"baseline_peak_mb": None, "candidate_peak_mb": 600.0},
        {"baseline_cpu_s": 2.0, "candidate_cpu_s": 1.0},
    ],
)
def test_noise_little_and_unmeasured_resources_are_not_said(fields):
    assert "times the" not in bench.with_costs(FASTER, costly(**fields), bench.OwnersRun()).reason


def test_without_starts_there_are_no_resources():
    nothing = bench.with_costs(FASTER, [], bench.OwnersRun(10))
    assert nothing.resources is None
    assert nothing.whole_run is None
    assert nothing.reason == FASTER.reason
