from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflash import stats
from trainflash.errors import Inconclusive, UsageError


def decided(ys, walls=None, **options):
    return stats.decide(ys, ys if walls is None else walls, **options)


def play(generator, mean, sd, *, affordable=16, drawn=None):
    """One whole comparison: starts are drawn until the rule stops."""
    ys = []
    while True:
        verdict = decided(ys, affordable=affordable)
        if verdict.decision != "continue":
            return verdict.decision
        ys.append(mean + (drawn() if drawn else generator.normal(0, sd)))


def rate(decision, mean, sd, *, games=1500, seed=1, drawn=None):
    generator = np.random.default_rng(seed)
    draw = (lambda: drawn(generator)) if drawn else None
    return sum(play(generator, mean, sd, drawn=draw) == decision for _ in range(games)) / games


def test_percentiles_need_enough_values():
    assert [stats.steps_for(q) for q in (0.5, 0.95, 0.99)] == [6, 72, 368]
    values = list(range(1, 368))
    assert stats.quantile(values, 0.99) is None
    assert stats.quantile([*values, 368], 0.99) == pytest.approx(364.33)
    assert stats.quantile(values[:71], 0.95) is None
    assert stats.quantile(values[:72], 0.95) is not None


def test_spread_says_none_where_too_few():
    few = stats.spread([1.0, 2.0, 6.0])
    assert (few.n, few.mean_ms, few.max_ms) == (3, 3.0, 6.0)
    assert few.p50_ms is few.p95_ms is few.p99_ms is None
    many = stats.spread(np.arange(400))
    assert many.p50_ms == pytest.approx(199.5)
    assert many.p99_ms == pytest.approx(395.01)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_spread_refuses_nothing_and_non_numbers(values):
    with pytest.raises(Inconclusive):
        stats.spread(values)


@pytest.mark.parametrize("n", range(4))
def test_fewer_than_four_starts_never_decide(n):
    assert decided([1.0] * n).decision == "continue"
    final = decided([1.0] * n, affordable=3)
    assert final.decision == "inconclusive"
    assert f"{n} of at least 4" in final.reason


def test_starts_that_do_not_count_are_left_out_and_named():
    verdict = decided([0.5, None, 0.5, float("nan"), 0.5], [0.5] * 5)
    assert verdict.decision == "continue"
    assert "3 of at least 4" in verdict.reason
    assert "2 did not count" in verdict.reason
    assert decided([0.5] * 4 + [math.inf], [0.5] * 5).decision == "accept"
    assert decided([0.5] * 4, [0.5, None, 0.5, 0.5]).decision == "continue"


def test_decides_only_at_looks():
    clear = [math.log(1.5)] * 16
    assert [n for n in range(17) if decided(clear[:n]).decision == "accept"] == list(stats.LOOKS)


def test_interval_at_four_lucky_starts_has_the_floor():
    verdict = decided([math.log(1.10)] * 4)
    assert verdict.decision == "accept"
    assert verdict.speedup.mean == pytest.approx(1.10)
    assert verdict.speedup.ci_low == pytest.approx(1.10 / math.exp(4.5407 * 0.02 / 2), rel=1e-4)
    assert decided([math.log(1.06)] * 4).decision == "continue"


def test_noisy_starts_pay_with_a_stricter_level():
    quiet, noisy = stats.interval([-0.05, 0, 0.05, 0]), stats.interval([-0.1, 0, 0.1, 0])
    assert quiet.half == pytest.approx(4.5407 * quiet.sd / 2, rel=1e-4)
    assert noisy.half == pytest.approx(8.8915 * noisy.sd / 2, rel=1e-4)


def test_starts_that_look_alike_by_luck_are_as_noisy_as_their_slices():
    ys = [0.20, 0.21, 0.20, 0.21]
    assert decided(ys).decision == "accept"
    assert decided(ys, scatters=[0.01, None, 0.01, 0.01]).decision == "accept"
    noisy = decided(ys, scatters=[0.1, 0.2, None, 0.1])
    assert noisy.decision == "continue"
    seen = stats.interval(ys, [0.1, 0.2, None, 0.1])
    assert seen.sd == pytest.approx(math.sqrt((0.01 + 0.04 + 0.01) / 3))
    assert noisy.speedup.ci_low == pytest.approx(math.exp(seen.low))
    with pytest.raises(UsageError, match="4 starts but 3 scatters"):
        decided(ys, scatters=[0.1] * 3)


def test_the_scatter_makes_lucky_accepts_of_noisy_programs_rare():
    """Half of the noise's variance shows in 12 slices a start: at most 1 in 600 of equal programs is accepted, many more without."""
    rng, wrong = np.random.default_rng(5), {True: 0, False: 0}
    times, sd, slices = 3000, 0.15, 12
    for _ in range(times):
        parts = rng.normal(0, sd * math.sqrt(0.5 * slices), (16, slices))
        ys = rng.normal(0, sd * math.sqrt(0.5), 16) + parts.mean(axis=1)
        scatters = [stats.standard_error(row) for row in parts]
        for known in wrong:
            for n in stats.LOOKS:
                verdict = decided(list(ys[:n]), scatters=scatters[:n] if known else None, affordable=16)
                if verdict.decision != "continue":
                    wrong[known] += verdict.decision == "accept"
                    break
    assert wrong[True] <= times / 600 and wrong[False] > 2 * wrong[True], wrong


def test_standard_error_of_a_mean_and_of_a_trimmed_mean():
    rng = np.random.default_rng(3)
    plain, trimmed = ([] for _ in range(2))
    samples = rng.standard_t(3, (4000, 12))
    for row in samples:
        plain.append(stats.standard_error(row) ** 2)
        trimmed.append(stats.standard_error(row, trimmed=True) ** 2)
    assert np.mean(plain) == pytest.approx(samples.mean(axis=1).var(), rel=0.15)
    assert np.mean(trimmed) == pytest.approx(np.var([stats.trimmed_mean(row) for row in samples]), rel=0.25)
    assert stats.standard_error([1.0]) is None


def test_rejects_equal_and_slower_programs():
    assert decided([0.0, 0.005, -0.005, 0.0] * 2).decision == "reject"
    slower = decided([math.log(0.8)] * 4)
    assert slower.decision == "reject"
    assert "slower" in slower.reason


def test_total_wall_time_guards_the_net_clock():
    ys = [math.log(1.2)] * 16
    walls = [-0.05, -0.04, -0.06, -0.05] * 4
    assert all(decided(ys[:n], walls[:n]).decision == "continue" for n in range(4, 16))
    last = decided(ys, walls)
    assert last.decision == "inconclusive"
    assert "total wall time" in last.reason
    assert decided(ys[:4], [0.4, -0.3, 0.2, 0.1]).decision == "accept"  # noise alone does not trip the guard


def test_min_gain_may_only_be_raised():
    ys = [math.log(1.15)] * 4
    assert decided(ys).decision == "accept"
    assert decided(ys, min_gain=1.3).decision == "reject"
    for gain in (1.0, 1.019, float("nan")):
        with pytest.raises(UsageError):
            decided(ys, min_gain=gain)


def test_unequal_lengths_are_refused():
    with pytest.raises(UsageError):
        stats.decide([0.1] * 4, [0.1] * 3)


def test_least_detectable_and_starts_needed_agree_with_the_table():
    assert [round(stats.least_detectable(0.02, n), 2) for n in (4, 6, 8, 12)] == [1.09, 1.06, 1.05, 1.04]
    assert round(stats.least_detectable(0.05, 8), 2) == 1.10
    assert round(stats.least_detectable(0.07, 8), 2) == 1.18
    needed = stats.starts_needed(0.05)
    assert 38 <= needed <= 44
    assert stats.least_detectable(0.05, needed) <= 1.05 < stats.least_detectable(0.05, needed - 1)
    assert stats.starts_needed(5.0) is None
    assert stats.starts_needed(0.02, 1.02) is None


def test_stops_at_once_when_the_budget_cannot_show_it():
    ys = [0.06, -0.07, 0.08, -0.05]
    stopped = decided(ys, affordable=8)
    assert stopped.decision == "inconclusive"
    assert stopped.least_detectable > 1.2
    assert "8 starts can show" in stopped.reason
    assert f"needs about {stopped.starts_needed}" in stopped.reason
    assert decided(ys, affordable=None).decision == "continue"


def test_goes_on_while_a_rejection_is_in_reach():
    ys = [-0.025, 0.02, -0.025, 0.02]
    assert decided(ys, affordable=8).decision == "continue"
    assert decided(ys * 2, affordable=8).decision == "reject"


def test_the_budget_s_end_is_a_look_in_place_of_the_next_one():
    ys = [0.6, 0.9, 0.35, 0.8, 0.7]
    assert decided(ys).decision == "continue"
    assert decided(ys, affordable=6).decision == "continue"
    assert decided(ys, affordable=5).decision == "accept"


@pytest.mark.parametrize("affordable", [5, 7, 10])
def test_looks_at_the_budget_s_end_cost_no_false_accepts(affordable):
    generator = np.random.default_rng(affordable)
    games = [play(generator, 0.0, 0.04, affordable=affordable) for _ in range(600)]
    assert games.count("accept") <= 3


def test_last_affordable_look_ends_it():
    ys = [0.15, -0.02, 0.15, 0.06]
    assert decided(ys).decision == "continue"
    assert decided(ys, affordable=5).decision == "inconclusive"


@pytest.mark.parametrize(("sd", "most"), [(0.02, 0.0), (0.04, 0.003), (0.07, 0.008), (0.12, 0.013), (0.24, 0.012)])
def test_equal_programs_are_not_accepted(sd, most):
    """The rule's own rates are 0, 0.05, 0.5, 0.9 and 0.8 % (400,000 comparisons); the rest is the luck of 1,500."""
    assert rate("accept", 0.0, sd) <= most


@pytest.mark.parametrize("sd", [0.05, 0.24])
def test_equal_programs_with_heavy_tails_are_not_accepted(sd):
    assert rate("accept", 0.0, sd, drawn=lambda generator: sd * generator.standard_t(3) / math.sqrt(3)) <= 0.015


@pytest.mark.parametrize(("share", "quiet", "loud"), [(0.1, 0.02, 0.2), (0.5, 0.02, 0.1), (0.5, 0.05, 0.3)])
def test_equal_programs_under_two_noise_levels_are_not_accepted(share, quiet, loud):
    """Starts on a machine that is quiet at times: the rule's own rates are 0.0, 0.07 and 0.12 % (6,000 comparisons each)."""
    assert rate("accept", 0.0, quiet, drawn=lambda generator: generator.normal(0, loud if generator.random() < share else quiet)) <= 0.005


def test_noise_that_comes_and_goes_in_blocks_is_no_way_to_be_accepted():
    """One level for each four starts, drawn from 0.02, 0.08 and 0.25; 0.33 % in 6,000 comparisons."""
    generator = np.random.default_rng(7)
    accepted, level = 0, 0.0
    for _ in range(1500):
        ys: list[float] = []
        while (verdict := decided(ys, affordable=16)).decision == "continue":
            level = generator.choice([0.02, 0.08, 0.25]) if len(ys) % 4 == 0 else level
            ys.append(generator.normal(0, level))
        accepted += verdict.decision == "accept"
    assert accepted / 1500 <= 0.01


@pytest.mark.parametrize("sd", [0.02, 0.07, 0.24])
def test_slower_programs_are_never_accepted(sd):
    assert rate("accept", math.log(0.95), sd) < 0.005


@pytest.mark.parametrize(("sd", "least"), [(0.02, 0.999), (0.04, 0.97), (0.07, 0.9)])
def test_a_true_quarter_is_accepted(sd, least):
    assert rate("accept", math.log(1.25), sd, games=500) >= least


def test_these_error_rates_would_show_a_careless_rule():
    """The peers' rule, one pair and more than 5 %, fails the same check."""
    generator = np.random.default_rng(1)
    assert np.mean(generator.normal(0, 0.07, 1500) > math.log(1.05)) > 0.2


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=4, max_size=16), st.floats(1.02, 2.0))
def test_an_accept_always_stands_clear_of_the_gain(ys, gain):
    verdict = decided(ys, min_gain=gain)
    if verdict.decision == "accept":
        assert verdict.speedup.ci_low > gain
    if verdict.decision == "reject":
        assert verdict.speedup.ci_high < gain * 1.04 / 1.02 + 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-0.5, 0.5), min_size=4, max_size=16))
def test_swapping_the_programs_never_accepts_both(ys):
    there, back = decided(ys), decided([-y for y in ys])
    assert not there.decision == back.decision == "accept"


def test_warmup_of_steady_steps_is_the_least():
    generator = np.random.default_rng(3)
    assert stats.find_warmup(generator.normal(6, 0.1, 200)) == 5


def test_warmup_finds_slow_first_steps():
    generator = np.random.default_rng(3)
    steps = generator.normal(6, 0.1, 200)
    steps[:30] *= 3
    assert stats.find_warmup(steps) in (30, 35)


def test_warmup_is_not_found_in_steps_that_never_settle():
    assert stats.find_warmup(np.linspace(30, 5, 200)) is None
    assert stats.find_warmup([6.0] * 39) is None


def test_few_steps_that_surely_get_faster_are_told_from_noise():
    generator = np.random.default_rng(5)
    noise = [generator.normal(6, 0.6, 25) for _ in range(200)]
    assert sum(stats.still_falls(steps) for steps in noise) <= 6
    assert all(stats.still_falls(steps + np.linspace(6, 0, 25)) for steps in noise)
    assert not stats.still_falls([6.0] * 12 + [5.9] * 12) and not stats.still_falls([])


def test_rare_slow_steps_are_not_warmup():
    steps = np.full(300, 6.0)
    steps[24::25] = 60
    assert stats.find_warmup(steps) == 5


def test_a_harmed_tail_turns_an_accept_into_a_reject():
    verdict = decided([math.log(1.3)] * 4)
    fine = stats.with_tails(verdict, [0.2, 0.21, 0.19, 0.2], [None] * 4)
    assert fine.decision == "accept"
    assert fine.speedup.p95 == pytest.approx(math.exp(0.2))
    assert fine.speedup.p99 is None
    assert "p99: 0 starts have the 368 steps" in fine.speedup.tail_reason
    harmed = stats.with_tails(verdict, [-0.5, -0.51, -0.49, -0.5], [None] * 4)
    assert harmed.decision == "reject"
    assert "p95" in harmed.reason
    unsure = stats.with_tails(verdict, [-0.5, 0.4, -0.3, 0.1], [None] * 4)
    assert unsure.decision == "accept"


def test_trimmed_mean_forgets_one_bad_slice_in_twelve():
    assert stats.trimmed_mean([0.1] * 11 + [5.0]) == pytest.approx(0.1)
    with pytest.raises(Inconclusive):
        stats.trimmed_mean([])


def test_the_programs_own_tail_is_what_comes_again_at_the_same_step():
    generator = np.random.default_rng(4)

    def runs(slow_ms, stalls):
        found = []
        for first in range(5):
            steps = np.full(400, 5.0)
            steps[24 - first :: 12] = slow_ms  # the same index in every start, whatever step it begins with
            if stalls:
                steps[generator.integers(0, 400, 40)] = 200.0
            found.append((first, steps))
        return found

    assert stats.own_tail(runs(10.0, True), runs(10.0, False), 0.95) == pytest.approx(1.0)
    assert stats.own_tail(runs(10.0, False), runs(20.0, True), 0.95) == pytest.approx(0.5)
    assert stats.own_tail(runs(10.0, False)[:4], runs(20.0, False)[:4], 0.95) is None
    short = [(first, steps[:60]) for first, steps in runs(10.0, False)]
    assert stats.own_tail(short, short, 0.95) is None


def test_a_tail_of_too_few_steps_forbids_nothing():
    verdict = decided([math.log(1.3)] * 4)
    worse = [-0.5, -0.51, -0.49, -0.5]
    assert stats.with_tails(verdict, worse, [None] * 4, [200] * 4).decision == "reject"
    few = stats.with_tails(verdict, worse, [None] * 4, [199] * 4)
    assert few.decision == "accept"
    assert few.speedup.p95_high is None
    assert stats.with_tails(verdict, [None] * 4, worse, [999] * 4).decision == "accept"
    assert stats.with_tails(verdict, [None] * 4, worse, [1000] * 4).decision == "reject"


def test_what_cannot_reach_the_least_gain_any_more_ends_there():
    ys = [-0.02, -0.24, -0.05, -0.16, -0.12]  # 0.89 times as fast: neither a reject at the next look nor an accept at any
    stopped = decided(ys, affordable=16)
    assert (stopped.decision, stopped.speedup.starts) == ("inconclusive", 5)
    assert "16 would not show 1.02 any more" in stopped.reason and stopped.speedup.mean == pytest.approx(math.exp(-0.118))
    faster = decided([-y for y in ys], affordable=16)
    assert faster.decision == "continue", "the same noise about a gain"
    near = decided([-0.01, 0.02, -0.015, 0.01], affordable=16)
    assert near.decision == "continue", "equal programs of little noise are rejected at the next look, which says more"


def test_a_stop_for_futility_costs_hardly_an_accept(monkeypatch):
    """Normal and t3 noise of one start; the true gain is 1.05 and 1.10."""
    generator = np.random.default_rng(11)
    for gain, sd in ((1.05, 0.05), (1.10, 0.105)):
        drawn = [
            math.log(gain) + sd * (generator.standard_normal(16), generator.standard_t(3, 16) / math.sqrt(3))[k % 2] for k in range(400)
        ]
        accepts = {}
        for chance in (0.0, stats.FUTILE):
            monkeypatch.setattr(stats, "FUTILE", chance)
            accepts[chance] = sum(ended(ys).decision == "accept" for ys in drawn)
        assert accepts[max(accepts)] <= accepts[0.0] <= accepts[max(accepts)] + 0.015 * len(drawn)


def ended(ys):
    return next(verdict for n in range(4, 17) if (verdict := decided(list(ys[:n]), affordable=16)).decision != "continue")
