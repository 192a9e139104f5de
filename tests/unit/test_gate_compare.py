"""The gate's decision: every tolerance, in both directions, with missing figures, on other machines; with noise and without."""

from __future__ import annotations

import functools
import math
import random
from dataclasses import fields, replace

import pytest
from gate_documents import OTHER_PROFILE, PROFILE, evaluation, metrics, own_metric, saved, steps
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflash import stats
from trainflash.errors import UsageError
from trainflash.gate import BenchRunner, baselines, noise, pairs, runner, slower
from trainflash.gate.comparison import CompareBaseline, compare, judged, permitted, together
from trainflash.gate.tolerances import RULES, ToleranceConfig, from_table, from_words
from trainflash.schema import GateEval, GateLine, GateMetrics, GatePhase, Location, Resources, Start, StepTimes, from_plain, to_plain
from trainflash.schema.gate_changes import CompareResult


def loaded(document):
    return baselines.Loaded("metrics" if isinstance(document, GateMetrics) else "eval", document, "measured.json")


def asked(baseline, current, **tolerances) -> CompareResult:
    return compare(loaded(current), loaded(baseline), ToleranceConfig(**tolerances).check())


def check(result, name):
    [found] = [each for each in result.checks if each.name == name]
    return found


many = functools.partial(metrics, repeats=12)

# One figure each: how the baseline looks, and how the change does when that figure is `worse` (per cent, points, or loss a step).
FIGURES = {
    "tokens_per_sec_p50": ("throughput_drop_pct", lambda: many(), lambda worse: many(10 / (1 - worse / 100))),
    "samples_per_sec_p50": ("throughput_drop_pct", lambda: many(tokens=None), lambda worse: many(10 / (1 - worse / 100), tokens=None)),
    "step_time_p50": ("step_time_increase_pct", lambda: many(tokens=None, samples=None),
                      lambda worse: many(10 * (1 + worse / 100), tokens=None, samples=None)),
    "memory_peak": ("memory_increase_pct", lambda: many(), lambda worse: many(memory=round(8e9 * (1 + worse / 100)))),
    "perplexity": ("ppl_increase_pct", lambda: evaluation(), lambda worse: evaluation(20 * (1 + worse / 100))),
    "probe basic_reasoning_25": ("probe_drop_abs", lambda: evaluation(),
                                 lambda worse: evaluation(probes={"basic_reasoning_25": 60 - worse, "format_following_30": 90.0})),
    "loss_slope": ("loss_slope_threshold", lambda: many(), lambda worse: many(slope=worse)),
}  # fmt: skip
LIMITS = {"default": 1.0, "half": 0.5, "triple": 3.0}
# how far from the limit, in limits: clearly better, as before, within, on the far side, far beyond
PLACES = {"better": -2.0, "same": 0.0, "within": 0.2, "beyond": 2.5, "far": 4.0}
MATRIX = [(figure, scale, place) for figure in FIGURES for scale in LIMITS for place in PLACES]


@pytest.mark.parametrize(("figure", "scale", "place"), MATRIX, ids=["-".join(each).replace(" ", "_") for each in MATRIX])
def test_each_figure_against_each_tolerance_in_both_directions(figure, scale, place):
    tolerance, before, after = FIGURES[figure]
    limit = getattr(ToleranceConfig(), tolerance) * LIMITS[scale]
    others = {each.name: 90.0 for each in fields(ToleranceConfig) if each.name not in (tolerance, "loss_slope_threshold")}
    if tolerance in ("throughput_drop_pct", "step_time_increase_pct"):  # the noise of twelve runs a side is two per cent
        limit = max(limit, 5.0)
    result = asked(before(), after(PLACES[place] * limit), **{**others, tolerance: limit})
    bad = "warn" if figure == "memory_peak" else "fail"
    expected = bad if place in ("beyond", "far") else "pass"
    assert (check(result, figure).result, result.result) == (expected, expected)
    assert result.passed == (expected != "fail")


MISSING = [
    *[(name, "metrics", side) for name in ("tokens_per_sec_p50", "step_time_p50_ms", "loss_slope", "memory_peak_bytes") for side in "bcx"],
    *[(name, "eval", side) for name in ("perplexity", "probes") for side in "bcx"],
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "side"), MISSING)
def test_what_is_missing_now_is_no_pass(name, kind, side):
    """b: the baseline lacks it; c: the change does; x: both."""
    made = metrics() if kind == "metrics" else evaluation()
    without = replace(made, **{name: () if name == "probes" else None})
    result = asked(without if side in "bx" else made, without if side in "cx" else made)
    expected = {"memory_peak_bytes": "warn"}.get(name, "inconclusive") if side == "c" else "pass"
    assert result.result == expected
    if side == "c":
        assert "missing now" in result.reasons[0]


@pytest.mark.parametrize("kind", ["metrics", "eval"])
@pytest.mark.parametrize("worse", [0.5, 1.0, 2.0])
def test_another_machine_profile_is_never_compared(kind, worse):
    before = metrics() if kind == "metrics" else evaluation()
    after = metrics(10 * worse, profile=OTHER_PROFILE) if kind == "metrics" else evaluation(20 * worse, profile=OTHER_PROFILE)
    result = asked(before, after)
    assert (result.result, result.compared, result.checks) == ("inconclusive", False, ())
    assert PROFILE in result.reasons[0] and OTHER_PROFILE in result.reasons[0] and "update-baseline" in result.mend
    assert permitted(result).result == "warn"


def test_permission_is_for_a_missing_baseline_only():
    beyond = asked(metrics(), metrics(20.0))
    assert permitted(beyond).result == "fail"
    assert permitted(asked(metrics(), metrics(mode="synthetic"))).result == "inconclusive"


@pytest.mark.parametrize(
    ("field", "value"), [("mode", "synthetic"), ("world_size", 8), ("source", "step_function"), ("command", ("python", "other.py"))]
)
def test_unlike_benchmarks_are_not_compared(field, value):
    result = asked(metrics(), metrics(**{field: value}))
    assert result.result == "inconclusive" and result.reasons[0].startswith(f"{field} was ")


@pytest.mark.parametrize(("field", "value"), [("shard_sha256", "cd" * 32), ("tokenizer", "words"), ("max_tokens", 64), ("seed", 7)])
def test_another_evaluation_is_not_compared(field, value):
    result = asked(evaluation(), evaluation(**{field: value}))
    assert result.result == "inconclusive" and field in result.reasons[0]


def test_a_probe_of_another_length_is_not_compared():
    before, after = evaluation(), evaluation()
    shorter = replace(after, probes=(replace(after.probes[0], total=10), after.probes[1]))
    assert asked(before, shorter).result == "inconclusive"


@pytest.mark.parametrize(
    ("better", "before", "after", "expected"),
    [
        ("lower", 1.0, 1.02, "fail"),
        ("lower", 1.0, 1.01, "pass"),
        ("lower", 1.0, 0.5, "pass"),
        ("higher", 90.0, 88.0, "fail"),
        ("higher", 90.0, 89.0, "pass"),
        ("higher", 90.0, 99.0, "pass"),
        ("higher", -1.0, -1.1, "fail"),
        ("lower", 0.0, 0.1, "inconclusive"),
        ("lower", 0.0, 0.0, "pass"),
    ],
)
def test_an_owners_metric_has_its_own_direction(better, before, after, expected):
    assert asked(own_metric(before, better), own_metric(after, better)).result == expected


def test_exactly_the_tolerance_is_within_it():
    assert asked(evaluation(20.0), evaluation(20.3)).result == "pass"
    assert asked(evaluation(20.0), evaluation(20.3001)).result == "fail"


def test_another_batch_size_is_judged_by_throughput():
    larger = asked(metrics(), metrics(19.0, tokens=8192.0, samples=64.0))
    assert larger.result == "pass" and check(larger, "step_time_p50").result == "skipped"
    slower_one = asked(metrics(), metrics(25.0, tokens=8192.0, samples=64.0))
    assert slower_one.result == "fail" and check(slower_one, "tokens_per_sec_p50").result == "fail"


def test_a_noisy_difference_is_neither_pass_nor_fail():
    result = asked(metrics(between=0.04, seed=3), metrics(10.7, between=0.04, seed=4))
    assert result.result == "inconclusive"
    found = check(result, "step_time_p50")
    assert found.low < found.limit < found.high and "noise" in found.said


def test_one_run_a_side_says_what_it_assumes():
    same = asked(metrics(repeats=1), metrics(repeats=1))
    assert same.result == "pass"
    near = asked(metrics(repeats=1), metrics(10.6, repeats=1))
    assert near.result == "inconclusive" and "is assumed" in near.reasons[0]
    assert asked(metrics(repeats=1), metrics(12.0, repeats=1)).result == "fail"


def test_an_unquiet_single_run_cannot_fail():
    uneven = tuple(value * (1 + 0.5 * (place >= 60)) for place, value in enumerate(steps(10.0)))
    unquiet = replace(metrics(11.0, repeats=1), repeats=(StepTimes(uneven),))
    assert noise.of_side(unquiet).sd > 0.1
    assert check(asked(metrics(repeats=1), unquiet), "step_time_p50").result == "inconclusive"


def test_more_repeats_narrow_the_interval():
    widths = [noise.half_width(noise.of_side(metrics(repeats=n)), noise.of_side(metrics(repeats=n, seed=9))) for n in (2, 4, 8)]
    assert widths == sorted(widths, reverse=True)


@settings(max_examples=60, deadline=None)
@given(ratio=st.floats(0.2, 5.0), repeats=st.integers(1, 6), between=st.floats(0.0, 0.2), seed=st.integers(0, 999))
def test_a_slower_run_never_does_better(ratio, repeats, between, seed):
    """Whatever the noise: the verdict gets no better when every figure is worse, and an interval holds its figure."""
    base = metrics(repeats=repeats, between=between, seed=seed)
    order = ["pass", "warn", "inconclusive", "fail"]
    found = [asked(base, metrics(10 * factor, repeats=repeats, between=between, seed=seed + 1)) for factor in (ratio, 1.3 * ratio)]
    near, far = (check(each, "step_time_p50") for each in found)
    assert near.low <= near.worse <= near.high
    assert order.index(near.result) <= order.index(far.result)


def test_false_failures_of_equal_programs_with_the_noise_that_is_seen():
    drawn = random.Random(5)
    results = []
    for _ in range(300):
        sides = [[math.exp(drawn.gauss(0, 0.02)) * 10 for _ in range(4)] for _ in range(2)]
        made = [replace(metrics(), repeats=tuple(StepTimes((one,) * 20) for one in side), step_time_p50_ms=sorted(side)[2],
                        tokens_per_sec_p50=4096e3 / sorted(side)[2]) for side in sides]  # fmt: skip
        results.append(asked(*made).result)
    assert results.count("fail") == 0


def test_a_rising_loss_fails_only_when_its_scatter_does_not_explain_it():
    rising = metrics(slope=0.01)
    assert check(asked(metrics(), rising), "loss_slope").result == "fail"
    drawn = random.Random(1)
    scattered = tuple(StepTimes(each.step_ms, None, tuple((at, 2 + 0.002 * at + drawn.gauss(0, 1)) for at in range(100)))
                      for each in metrics().repeats[:1])  # fmt: skip
    unsure = replace(metrics(slope=0.002, repeats=1), repeats=scattered)
    found = check(asked(metrics(), unsure), "loss_slope")
    assert found.result == "inconclusive" and found.low < found.limit < found.high
    assert check(asked(unsure, unsure), "loss_slope").result == "pass"  # what the baseline did too is no news


def test_the_phase_and_line_that_got_slower_are_named():
    after = replace(metrics(13.0), phases={"Data": GatePhase(4.8, 0.37), "Fwd": GatePhase(8.2, 0.63)},
                    lines=(GateLine(Location("train.py", 14), "Data", 4.6), GateLine(Location("train.py", 22), "Fwd", 8.2)))  # fmt: skip
    result = asked(metrics(), after)
    [part] = result.slower
    assert (part.phase, str(part.location), part.line_current_ms) == ("Data", "train.py:14", 4.6)
    moved = slower.parts(metrics(), after, lambda place: place.line + 2)
    assert moved[0].line_baseline_ms == pytest.approx(2.0)


def test_nothing_measured_is_no_pass():
    empty = CompareResult("pass", "stored", True, PROFILE, None, None, ())  # type: ignore[arg-type]
    assert judged(empty, []).result == "inconclusive"


def test_the_worst_of_several_decides():
    good, bad = asked(metrics(), metrics()), asked(evaluation(), evaluation(30.0))
    both = together([good, bad])
    assert both.result == "fail" and len(both.checks) == len(good.checks) + len(bad.checks)
    assert "perplexity" in both.reasons[0]


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, "much", None, True])
@pytest.mark.parametrize("name", [each.name for each in fields(ToleranceConfig)])
def test_a_tolerance_that_is_none_is_refused_by_name(name, value):
    with pytest.raises(UsageError, match=name):
        from_table({name: value}, "trainflash.toml") if value is not True else ToleranceConfig(**{name: value}).check()


def test_tolerances_come_from_config_and_words():
    base = from_table({"throughput_drop_pct": 3}, "trainflash.toml")
    assert from_words(("ppl_increase_pct=0.5",), base) == ToleranceConfig(throughput_drop_pct=3.0, ppl_increase_pct=0.5)
    for words, named in (("speed=3", "speed"), ("ppl_increase_pct", "NAME=VALUE"), ("throughput_drop_pct=100", "nothing could ever fail")):
        with pytest.raises(UsageError) as refused:
            from_words((words,), base)
        assert named in refused.value.message + refused.value.mend
    assert {each.tolerance for each in RULES} == {each.name for each in fields(ToleranceConfig)}


def test_files_are_compared_by_the_contracts_class(tmp_path):
    gate = CompareBaseline(ToleranceConfig())
    before, after = saved(tmp_path / "a.json", metrics()), saved(tmp_path / "b.json", metrics(12.0))
    assert gate.compare(str(before), str(before)).passed
    result = gate.compare(str(after), str(before))
    assert result.result == "fail" and from_plain(CompareResult, to_plain(result)) == result
    with pytest.raises(UsageError, match="holds metrics"):
        gate.compare(saved(tmp_path / "e.json", evaluation()), before)
    gate.update_baseline(str(before), str(tmp_path / "bench" / "baselines"))
    assert gate.compare(after, tmp_path / "bench" / "baselines" / f"{PROFILE}.metrics.json").result == "fail"


# --- pairs


def start(n, y, **changed):
    plain = {"n": n, "schedule": "resident", "y": y, "y_wall": y, "clock": "net", "steps": 240, "baseline_step_ms": 10.0,
             "candidate_step_ms": 10.0 / math.exp(y)}  # fmt: skip
    return Start(**{**plain, **changed})


def drawn_starts(seed, count, mean, sd):
    drawn = random.Random(seed)
    return [start(n + 1, mean + drawn.gauss(0, sd)) for n in range(count)]


LIMIT = pairs.limit(ToleranceConfig())


def until_decided(starts, judge):
    for count in range(len(starts) + 1):
        verdict = judge(starts[:count], affordable=len(starts))
        if verdict.decision != "continue":
            return verdict.decision, count
    raise AssertionError("no decision")


@pytest.mark.parametrize(
    ("mean", "wanted"), [(0.0, "accept"), (0.05, "accept"), (math.log(0.9), "reject"), (math.log(0.85), "reject"), (-0.5, "reject")]
)
def test_pairs_are_decided_by_the_side_on_which_their_interval_lies(mean, wanted):
    decided = [until_decided(drawn_starts(seed, 16, mean, 0.02), pairs.judge_by(LIMIT)) for seed in range(20)]
    assert sum(decision == wanted for decision, _ in decided) >= 19
    assert all(count in stats.LOOKS for _, count in decided)


def test_equal_programs_do_not_fail():
    judge = pairs.judge_by(LIMIT)
    decisions = [until_decided(drawn_starts(seed, 16, 0.0, 0.03), judge)[0] for seed in range(200)]
    assert decisions.count("reject") == 0


def test_too_few_pairs_decide_nothing():
    assert pairs.judge_by(LIMIT)(drawn_starts(1, 3, -0.5, 0.01), affordable=3).decision == "inconclusive"
    assert pairs.judge_by(LIMIT)(drawn_starts(1, 3, -0.5, 0.01), affordable=None).decision == "continue"
    assert pairs.judge_by(LIMIT, most_starts=6)(drawn_starts(1, 6, -0.05, 0.02), affordable=None).decision == "inconclusive"


def test_total_wall_time_may_not_speak_against_the_net_clock():
    contradicted = [start(n, math.log(0.8) + 0.001 * n, y_wall=0.01 * n) for n in range(4)]
    assert pairs.judge_by(LIMIT)(contradicted, affordable=4).decision == "inconclusive"
    hidden = [start(n, 0.001 * n, y_wall=math.log(0.7) + 0.001 * n) for n in range(4)]
    assert pairs.judge_by(LIMIT)(hidden, affordable=4).decision == "inconclusive"


def checks_of(starts, work=None, used=None, tolerances=None):
    tolerances = tolerances or ToleranceConfig()
    work = work or pairs.Work()
    verdict = pairs.judge_by(pairs.limit(tolerances, work.compared[1]))(starts, affordable=len(starts))
    return pairs.checks(verdict, starts, used, work, tolerances)


def test_paired_checks_carry_figures_and_intervals():
    found = {each.name: each for each in checks_of(drawn_starts(2, 8, math.log(0.85), 0.01), pairs.Work(tokens=(4096.0, 4096.0)))}
    assert {name: each.result for name, each in found.items()} == {"tokens_per_sec": "fail", "step_time": "fail"}
    assert found["tokens_per_sec"].worse == pytest.approx(15, abs=1.5)
    assert found["tokens_per_sec"].low < found["tokens_per_sec"].worse < found["tokens_per_sec"].high


def test_paired_step_time_does_not_judge_another_batch_size():
    work = pairs.Work(samples=(32.0, 64.0))
    assert work.compared == ((32.0, 64.0), "sample")
    found = {each.name: each.result for each in checks_of(drawn_starts(2, 8, 0.0, 0.01), work)}
    assert found == {"samples_per_sec": "pass", "step_time": "skipped"}


def test_paired_memory_warns():
    used = Resources(None, None, 1000.0, 1200.0)
    found = {each.name: each.result for each in checks_of(drawn_starts(2, 8, 0.0, 0.01), used=used)}
    assert found["memory_peak"] == "warn"


def test_a_candidate_that_fails_by_itself_fails_the_gate():
    crashed = stats.decide([], [], affordable=0)
    for decision, wanted in (("reject", "fail"), ("inconclusive", "inconclusive")):
        [found] = pairs.checks(replace(crashed, decision=decision), [], None, pairs.Work(), ToleranceConfig())
        assert found.result == wanted


def test_starts_that_do_not_count_are_told():
    spoilt = replace(start(9, 0.0), y=None, y_wall=None, reason="not steady")
    verdict = pairs.judge_by(LIMIT)([*drawn_starts(1, 3, 0.0, 0.01), spoilt], affordable=3)
    assert verdict.decision == "inconclusive" and "1 did not count: not steady" in verdict.reason


# --- the runner


def test_two_benchmarks_of_one_state_are_joined():
    both = runner.more(metrics(repeats=1), metrics(12.0, repeats=3))
    assert len(both.repeats) == 4 and 11.5 < both.step_time_p50_ms < 12.5
    assert both.tokens_per_sec_p50 == pytest.approx(4096 / both.step_time_p50_ms * 1e3)
    with pytest.raises(UsageError, match="mode"):
        runner.more(metrics(), metrics(mode="synthetic"))


def test_the_runner_compares_what_an_earlier_run_wrote(tmp_path):
    made, stored = BenchRunner(), tmp_path / "baselines"
    with pytest.raises(UsageError, match="holds no metrics"):
        made.run(["compare"], out_dir=tmp_path)
    saved(tmp_path / "metrics.json", metrics())
    assert made.run(["compare"], out_dir=tmp_path, baselines_dir=stored)["compare"]["result"] == "inconclusive"
    CompareBaseline().update_baseline(tmp_path / "metrics.json", stored)
    assert made.run(["compare"], out_dir=tmp_path, baselines_dir=stored)["compare"]["result"] == "pass"
    saved(tmp_path / "metrics.json", metrics(12.0))
    assert made.run(["compare"], out_dir=tmp_path, baselines_dir=stored)["compare"]["result"] == "fail"
    loose = ToleranceConfig(throughput_drop_pct=60, step_time_increase_pct=90)
    assert made.run(["compare"], out_dir=tmp_path, baselines_dir=stored, tolerances=loose)["compare"]["result"] == "pass"


@pytest.mark.parametrize("modes", [[], ["speed"], ["env", "speed"]])
def test_the_runner_refuses_what_is_no_mode(modes):
    with pytest.raises(UsageError):
        BenchRunner().run(modes)


def test_the_documents_are_what_the_contract_lists():
    assert {each.name: each.default for each in fields(ToleranceConfig)} == {
        "throughput_drop_pct": 5.0, "step_time_increase_pct": 5.0, "memory_increase_pct": 10.0, "ppl_increase_pct": 1.5,
        "probe_drop_abs": 2.0, "loss_slope_threshold": 0.001,
    }  # fmt: skip
    assert isinstance(evaluation(), GateEval)
