"""Steps that change while they are timed: early ones never speak for the run."""

from __future__ import annotations

import random

import pytest

from trainflash import bench
from trainflash.bench import trends
from trainflash.schema import Speedup, SpeedVerdict, Start

FASTER = SpeedVerdict("accept", Speedup(1.2, 1.15, 1.25, 4), "1.2 times as fast")
TIMED = 300


def profiles(baseline, candidate, noise: float = 0.05) -> list[dict]:
    """Four starts of steps 10 to 310, `baseline(n)` and `candidate(n)` ms each, on a machine that scatters."""
    found = []
    for number in range(4):
        draw = random.Random(number)
        line = {"n": number}
        for side, time in (("baseline", baseline), ("candidate", candidate)):
            line[side] = [10, [time(n) * (1 + abs(draw.gauss(0, noise))) for n in range(10, 10 + TIMED)]]
        found.append(line)
    return found


def judged(baseline, candidate, steps: int | None):
    found = profiles(baseline, candidate)
    mean = [sum(sum(line[side][1]) for line in found) / 4 / TIMED for side in ("baseline", "candidate")]
    starts = [
        Start(n, "resident", 0.2, 0.2, "net", steps=TIMED, baseline_step_ms=mean[0], candidate_step_ms=mean[1],
              baseline_lead_s=1.0, candidate_lead_s=1.0)
        for n in range(4)
    ]  # fmt: skip
    return bench.with_costs(FASTER, starts, bench.OwnersRun(steps), trends=trends.of_sides(found))


def test_a_candidate_whose_steps_get_slower_is_not_accepted_on_its_early_ones():
    """A metric that is never reset: 5 ms at first where the baseline takes 7, 1 ms more with each 100 steps."""
    found = judged(lambda n: 7.0, lambda n: 5.0 + n / 100, steps=1250)
    assert found.decision == "reject"
    assert "get slower where the baseline's do not" in found.reason
    assert found.whole_run.speedup == pytest.approx(7 / 11.4, rel=0.1)
    assert judged(lambda n: 7.0, lambda n: 5.0 + n / 100, steps=None).decision == "inconclusive"
    assert judged(lambda n: 12.0, lambda n: 5.0 + n / 100, steps=600).decision == "inconclusive"


def test_steps_that_were_all_timed_speak_for_their_run():
    assert judged(lambda n: 8.0, lambda n: 5.0 + n / 150, steps=TIMED).decision == "accept"


def test_what_ends_a_growth_gains_more_in_the_run_than_at_first():
    """Hooks that pile up: the run's factor is that of all steps, not of those that were timed."""
    found = judged(lambda n: 10.0 + n / 10, lambda n: 8.0, steps=1250)
    assert found.decision == "accept"
    assert found.whole_run.speedup == pytest.approx((1.0 + 1.25 * 73.5) / (1.0 + 1.25 * 8), rel=0.1)
    assert "steps 10 to 310 of 1,260; the baseline's get slower" in found.reason


@pytest.mark.parametrize("grows", [0.0, 0.0005])
def test_steps_without_a_trend_say_so(grows):
    found = judged(lambda n: 10.0 + grows * n, lambda n: 8.0 + grows * n, steps=1000)
    assert (found.decision, "no trend seen" in found.reason) == ("accept", True)


def test_too_few_starts_or_steps_tell_no_trend():
    few = profiles(lambda n: 1.0, lambda n: 1.0)
    assert trends.of_sides(few[:3]) is None
    assert trends.of_sides([{**line, "baseline": [10, line["baseline"][1][:20]]} for line in few]) is None
