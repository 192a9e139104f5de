"""Steps that change along a run: early ones never speak for it."""

from __future__ import annotations

import math
import random

import pytest

from trainflash import bench
from trainflash.bench import course
from trainflash.schema import Speedup, SpeedVerdict, Start

FASTER = SpeedVerdict("accept", Speedup(1.2, 1.15, 1.25, 4), "1.2 times as fast")
SLOWER = SpeedVerdict("reject", Speedup(0.95, 0.93, 0.97, 4), "slower")
WINDOW = 20


def looks(baseline, candidate, last: int, *, starts: int = 4, noise: float = 0.02, ended: bool = False, drift: float = 0.0):
    """Starts that saw 24 windows up to step `last`; `baseline(n)` and `candidate(n)` ms a step, on a machine that scatters and drifts."""
    made, lines = [], []
    for number in range(1, starts + 1):
        draw, rows = random.Random(number), []
        for window in range(24):
            first = 5 + round(window * (last - 5 - WINDOW) / 23)
            weather = math.exp(drift * window / 23)
            steps = range(first, first + WINDOW)
            pair = [sum(map(time, steps)) / WINDOW * weather * math.exp(draw.gauss(0, noise)) for time in (baseline, candidate)]
            own = [sum(map(time, steps)) / WINDOW * math.exp(draw.gauss(0, noise)) for time in (baseline, candidate)]
            rows.append([first, WINDOW, *pair, *pair, *own])
        totals = [sum(map(time, range(last))) / 1e3 for time in (baseline, candidate)]
        seen = {"run_steps": last, "baseline_run_s": 1 + totals[0], "candidate_run_s": 1 + totals[1]} if ended else {}
        y = math.log(totals[0] / totals[1])
        made.append(
            Start(
                number, "resident", 0.2, 0.2, "net", steps=240, baseline_step_ms=baseline(5), candidate_step_ms=candidate(5),
                baseline_lead_s=1.0, candidate_lead_s=1.0, last_step=last, passed=500, y_run=y, y_run_wall=y, **seen,
            )
        )  # fmt: skip
        lines.append({"n": number, "course": rows})
    return made, lines


def judged(verdict, made, steps: int | None):
    starts, lines = made
    return bench.with_costs(verdict, starts, bench.OwnersRun(steps), course=course.of_starts(starts, lines))


def flat(ms: float):
    return lambda n: ms


def growing(ms: float, more: float):
    return lambda n: ms + more * n


def test_a_candidate_whose_steps_get_slower_is_not_accepted_on_those_that_were_seen():
    """A metric that is never reset: 5 ms at first where the baseline takes 7, 1 ms more with each 100 steps."""
    found = judged(FASTER, looks(flat(7.0), growing(5.0, 0.01), 150), 1250)
    assert found.decision == "inconclusive"
    assert "gains less with each step" in found.reason
    assert "of 1,250" in found.reason
    assert "a larger --budget" in found.reason
    assert (found.whole_run.speedup, found.whole_run.basis) == (None, "not_claimed")
    assert judged(FASTER, looks(flat(7.0), growing(5.0, 0.01), 150), None).decision == "inconclusive"


def test_a_run_that_was_seen_to_its_end_is_measured():
    made = looks(flat(7.0), growing(5.0, 0.01), 1250, ended=True)
    found = judged(FASTER, made, 1250)
    assert found.decision == "reject"
    assert found.whole_run.basis == "measured"
    assert found.whole_run.speedup == pytest.approx((1 + 8.75) / (1 + 14.06), rel=0.01)
    assert found.whole_run.ci_low < found.whole_run.speedup < found.whole_run.ci_high < 1
    assert found.whole_run.by_step[0].speedup > 1 > found.whole_run.by_step[-1].speedup
    assert judged(FASTER, looks(growing(10.0, 0.02), flat(8.0), 1250, ended=True), 1250).decision == "accept"


def test_steps_that_were_all_seen_speak_for_their_run():
    assert judged(FASTER, looks(flat(8.0), growing(5.0, 0.01), 300), 300).decision == "accept"
    assert judged(FASTER, looks(flat(8.0), growing(5.0, 0.01), 300), 600).decision == "inconclusive"


def test_what_ends_a_growth_is_accepted_for_the_steps_that_were_seen_and_nothing_is_claimed_of_the_run():
    found = judged(FASTER, looks(growing(10.0, 0.1), flat(8.0), 300), 1250)
    assert found.decision == "accept"
    assert found.whole_run.speedup is None
    assert "nothing is claimed" in found.reason


def test_a_gain_that_is_still_to_come_is_not_rejected():
    assert judged(SLOWER, looks(growing(5.0, 0.01), flat(6.0), 200), 2000).decision == "inconclusive"
    assert judged(SLOWER, looks(flat(5.0), flat(5.3), 200), 2000).decision == "reject"


def test_a_fall_of_the_baseline_leaves_a_gain_that_goes_on_alone():
    assert judged(FASTER, looks(growing(20.0, -0.02), flat(8.0), 300), 350).decision == "accept"
    assert judged(FASTER, looks(growing(20.0, -0.02), flat(8.0), 300), 5000).decision == "inconclusive"


@pytest.mark.parametrize("drift", [0.0, 0.7], ids=["quiet", "the machine slows down"])
def test_steps_without_a_trend_say_so(drift):
    found = judged(FASTER, looks(flat(10.0), flat(8.0), 500, drift=drift), 1000)
    assert found.decision == "accept"
    assert "from steps 5 to 500 of 1,000; no trend seen" in found.reason
    assert found.whole_run.basis == "no_trend"
    assert found.whole_run.by_step == ()


@pytest.mark.parametrize(
    ("baseline", "candidate", "sides"),
    [
        (lambda n: 8.0 if n < 400 else 10.0, flat(8.0), {"baseline"}),
        (flat(8.0), lambda n: 6.0 if n < 850 else 12.0, {"candidate"}),
        (lambda n: 8.0 + n // 250, lambda n: 4.0 + (n // 250) / 2, {"baseline", "candidate"}),
        (growing(16.0, -0.01), flat(8.0), {"baseline"}),
    ],
    ids=["stair", "late", "stairs in both at one factor", "fall"],
)
def test_a_single_look_sees_changes_of_every_shape(baseline, candidate, sides):
    seen = course.of_starts(*looks(baseline, candidate, 1000, starts=1))
    assert seen.changes
    assert seen.changing == sides


def test_identical_programs_change_by_nothing():
    calls = [course.of_starts(*(group[:1] for group in looks(flat(9.0), flat(9.0), 1000, noise=0.06, starts=1))) for _ in range(3)]
    assert not any(seen.changes for seen in calls)


def weather(draw: random.Random) -> list[list[float]]:
    """Rows of a program of 9 ms on a machine whose load comes and goes: noise that lasts over several rows."""
    rows, drift = [], [0.0] * 4
    for at in range(24):
        drift = [0.8 * each + 0.6 * draw.gauss(0, 0.06) for each in drift]
        pair, own = [9 * math.exp(each) for each in drift[:2]], [9 * math.exp(each) for each in drift[2:]]
        rows.append([5 + 40 * at, 20, *pair, *pair, *own])
    return rows


def test_what_one_start_takes_for_a_change_must_come_again_in_the_next():
    suspected = said = 0
    for number in range(100):
        draw = random.Random(number)
        lines = [{"n": n, "course": weather(draw)} for n in (1, 2)]
        starts = [Start(n, "resident", 0.0, 0.0, "net", last_step=945, y_run=0.0, y_run_wall=0.0) for n in (1, 2)]
        first = course.of_starts(starts[:1], lines[:1])
        suspected += first.changes
        assert not (first.changes and first.known)
        said += course.of_starts(starts, lines).changes
    assert suspected > 30 and said <= 10


def test_much_noise_asks_for_another_look():
    noisy = looks(flat(9.0), flat(9.0), 1000, noise=0.6)
    one = course.of_starts(noisy[0][:1], noisy[1])
    assert not one.known
    assert course.of_starts(noisy[0][: course.MOST_LOOKS], noisy[1]).known, "more of the same would cost the verdict"
    assert course.of_starts([], []) is None


def test_where_none_could_look_along_the_run_all_count_as_they_are():
    """Ranks elsewhere, which are neither paced nor frozen: what changes there is said, and guards the verdict."""
    starts, lines = looks(flat(7.0), growing(5.0, 0.01), 300)
    near = [Start(start.n, "sequential", 0.2, 0.2, "wall") for start in starts]
    assert course.of_starts(near, lines).gain_falls
    assert [start.y for start in course.over_the_run(near, lines)] == [0.2] * 4


def test_starts_count_by_what_most_of_them_saw():
    starts, lines = looks(growing(10.0, 0.01), flat(8.0), 1000)
    shorter, its_line = looks(growing(10.0, 0.01), flat(8.0), 300, starts=5)
    early = Start(9, "resident", 0.2, 0.2, "net")
    counted = course.over_the_run([*starts, shorter[4], early], [*lines, its_line[4]])
    assert [start.y is not None for start in counted] == [True] * 4 + [False, False]
    assert "timed only the first" in counted[-1].reason
    longer = [starts[0], *shorter[1:]]
    counted = course.over_the_run(longer, [lines[0], *its_line[1:]])
    assert counted[0].y == pytest.approx(math.log(11.5 / 8.0), abs=0.02), "of the steps that the others saw, too"
    assert counted[1].y == shorter[1].y_run
