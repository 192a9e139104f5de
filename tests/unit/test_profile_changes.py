"""Two profiles: what changed, whether they may be compared, pass or fail, the history of it, publishing."""

from __future__ import annotations

import functools
import json
import sys
import types
from dataclasses import replace

import pytest
from profile_scenarios import flat, host, launched, profile, step, trace, training, work

from trainflash import report
from trainflash.errors import UsageError
from trainflash.profile import publish, tracking
from trainflash.profile.analysis.build import Options, summarize
from trainflash.profile.compare import compare
from trainflash.profile.events import Identity, Kind
from trainflash.schema import from_plain, to_plain
from trainflash.schema.profile_changes import ProfileComparison, TrackLimits

WHEN = "2026-01-01T00:00:00Z"
DEVICE = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}


@functools.cache
def made(loading: float = 300, steps: int = 12, device: str = "NVIDIA H100"):
    properties = {"deviceProperties": [{"id": 0, "name": device}]}
    return summarize(profile(trace(training(steps, loading=loading), provenance=properties)))


def test_a_trace_against_itself_shows_no_change():
    same = compare(made(), made())
    assert not same.changed and same.said == ("no change: both summaries are equal",) and same.provenance.same_trace
    assert same.regressed_ops == same.improved_ops == () and same.findings_gone == same.findings_new == ()
    for group in (same.time_breakdown_share_delta, same.idle_causes):
        assert all(row.share.change == 0 and row.per_unit_us.change == 0 for row in group)
    assert all(row.per_unit_us.change == 0 for row in same.semantic_families)
    assert same.step_time.speedup == 1 and same.step_time.median_us.change == 0


def test_loading_is_named_and_then_said_to_be_gone():
    changed = compare(made(), made(loading=21))
    assert "data_loading" in changed.findings_gone and changed.step_time.speedup == pytest.approx(810 / 531)
    assert changed.idle_causes[0].part == "data_loading" and changed.idle_causes[0].per_unit_us.change < -250
    said = " ".join(changed.said)
    assert "gone: The device waits for batches" in said and "34.4 % shorter" in said
    back = compare(made(loading=21), made())
    assert "data_loading" in back.findings_new and "longer" in " ".join(back.said)


def test_more_steps_of_the_same_kind_are_no_change_once_normalised():
    more = compare(made(steps=12), made(steps=24))
    assert more.normalized_by == "step"
    assert all(abs(row.per_unit_us.change or 0) < 3 for row in more.semantic_families)
    assert more.regressed_ops == () or more.regressed_ops[0].per_unit_us.change < 3


def test_without_steps_figures_are_spread_over_ranks():
    events = [work("gemm", 0, 100), work("gemm", 200, 100)]
    one = summarize(profile(trace(events)))
    other = summarize(profile(trace([*events, work("gemm", 400, 100)])))
    found = compare(one, other)
    assert found.normalized_by == "rank" and found.semantic_families[0].per_unit_us.change == 100
    assert found.ops_normalized_by == "call" and found.regressed_ops == (), "one call more, each as long as before"


def test_an_op_that_fell_off_a_full_list_is_not_called_gone():
    short = summarize(profile(trace(training(), provenance=DEVICE)), Options(hot_op_limit=1))
    assert all(row.name != "multi_tensor_apply_kernel" for row in compare(made(steps=8), short).improved_ops)


@pytest.mark.parametrize(
    ("before", "after", "strict", "says"),
    [
        (lambda: made(), lambda: made(), True, "one and the same trace"),
        (lambda: made(), lambda: made(steps=13, device="NVIDIA A100"), True, "NVIDIA H100 and NVIDIA A100"),
        (lambda: made(), lambda: summarize(profile(trace([work("other", 0, 9)]))), True, "nothing shows"),
        (lambda: made(), lambda: summarize(profile(trace(training())), Options(readability_run=True)), False, "readable names"),
        (lambda: made(), lambda: summarize(profile(trace(training())), Options(breakdown_mode="inclusive")), False, "different modes"),
    ],
)
def test_what_must_not_be_compared(before, after, strict, says):
    with pytest.raises(UsageError, match=says):
        compare(before(), after(), strict=strict)


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ({"identity": Identity(rank=0, world_size=8)}, {"identity": Identity(rank=0, world_size=4)}, "world: 8 and 4"),
        (
            {"provenance": DEVICE},
            {"provenance": {"deviceProperties": [{"id": 0, "name": "AMD MI300X"}]}},
            "devices: NVIDIA H100 and AMD MI300X",
        ),
    ],
)
def test_other_worlds_and_devices_are_said_and_refused(one, other, differs):
    before, after = summarize(profile(trace(training(), **one))), summarize(profile(trace(training(loading=21), **other)))
    compared = compare(before, after)
    assert differs in compared.provenance.differences
    kind = differs.partition(":")[0]
    assert f"before and after differ in {kind}: a step of the one is not the work of a step of the other" in compared.said
    with pytest.raises(UsageError, match=differs):
        compare(before, after, strict=True)


def test_another_model_is_said_where_modules_or_operators_tell_it():
    def modules(name):
        return [*training(), host(f"nn.Module: {name}_0", 5, 20, kind=Kind.PYTHON)]

    before, after = (summarize(profile(trace(modules(name)))) for name in ("ResNet", "Bert"))
    assert "model: ResNet and Bert" in compare(before, after).provenance.differences

    def operators(names):
        return [host(f"aten::{name}", 10 + 30 * at, 20) for at, name in enumerate(names)]

    some, others = ([f"{word}{number}" for number in range(200)] for word in ("conv", "attend"))
    before, after = summarize(profile(trace(operators(some)))), summarize(profile(trace(operators(others))))
    assert any(each.startswith("model: only") for each in compare(before, after).provenance.differences)
    assert compare(before, before).provenance.differences == ()


def test_a_last_step_that_holds_the_profilers_stop_is_said():
    marks = [step(number, 1000 * number, 1000 if number < 5 else 2600) for number in range(6)]
    ops = [host("aten::mm", 1000 * number + 10, 900) for number in range(6)]
    before = summarize(profile(trace([*marks, *ops])), Options(warmup_steps=0))
    assert compare(before, made()).provenance.notes == ("before: step 5, its last, took 2.6 times the others: the profiler stopped in it",)


def test_like_workloads_pass_the_strict_check():
    assert "devices: NVIDIA H100" in compare(made(), made(loading=21), strict=True).provenance.shared


def test_flags_that_changed_are_noted():
    other = summarize(profile(trace(training(12, loading=21), provenance={**DEVICE, "XLA_FLAGS": "--xla_a=1", "cupti_version": 22})))
    assert compare(made(), other).provenance.notes == ("XLA_FLAGS: None and --xla_a=1",)


def assess(before, after, **limits):
    return tracking.assess(compare(before, after), TrackLimits(**limits), label="try", recorded_at_utc=WHEN)


def test_pass_warn_fail_inconclusive():
    assert assess(made(), made(loading=21)).result == "pass"
    slower = assess(made(loading=21), made())
    assert slower.result == "fail" and "the median step is slower by 52.5" in slower.failures[0]
    assert assess(made(loading=21), made(), max_step_median_regression_pct=60, max_step_p90_regression_pct=60).result == "pass"
    talks = flat(
        [step(n, 1000 * n, 1000) for n in range(12)],
        *[launched("ncclDevKernel_AllReduce", 1000 * n + 5, 1000 * n + 10, 300, n + 1) for n in range(12)],
    )
    quiet = flat(
        [step(n, 1000 * n, 1000) for n in range(12)], *[launched("gemm", 1000 * n + 5, 1000 * n + 10, 300, n + 1) for n in range(12)]
    )
    warned = assess(summarize(profile(trace(quiet))), summarize(profile(trace(talks))))
    assert warned.result == "warn" and "communication" in warned.warnings[0]
    unmarked = summarize(profile(trace([work("gemm", 0, 100)])))
    assert assess(unmarked, unmarked).result == "inconclusive"


def test_a_p90_of_few_steps_is_not_judged():
    assert assess(made(loading=21, steps=8), made(steps=8)).metrics["steady_state_p90_regression_pct"] is None


def test_the_history_keeps_every_record_and_says_the_trend(tmp_path):
    path = tmp_path / "deep" / "history.jsonl"
    tracking.append(path, assess(made(), made(loading=100)))
    tracking.append(path, replace(assess(made(loading=100), made(loading=200)), recorded_at_utc="2026-01-02T00:00:00Z", label="worse"))
    with path.open("a") as out:
        out.write('{"cut off')
    tracking.append(path, replace(assess(made(loading=200), made(loading=21)), recorded_at_utc="2026-01-03T00:00:00Z", label="good | <b>"))
    found = tracking.history(path)
    assert found.num_records == 3 and found.status_counts == {"fail": 1, "pass": 2} and found.unreadable_lines == 1
    assert [each.label for each in found.trend] == ["try", "worse", "good | <b>"]
    assert found.step_median_change_pct == pytest.approx((531 / 810 - 1) * 100, abs=1e-3)
    assert len(tracking.history(path, 1).trend) == 1
    assert all(json.loads(line)["comparison"] is None for line in path.read_text().splitlines() if line.endswith("}"))
    page = report.profiles.html(found)
    assert "good | &lt;b&gt;" in page and "<svg" in page and "<script" not in page
    assert "good \\| &lt;b>" in report.profiles.markdown(found)


@pytest.mark.parametrize("content", [None, "", "not json\n", "\x00\x01"])
def test_a_history_without_records_is_bad_input(tmp_path, content):
    path = tmp_path / "history.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=r"history\.jsonl"):
        tracking.history(path)


def test_reports_are_deterministic_and_hold_what_they_promise():
    before, after = made(), made(loading=21)
    changed = compare(before, after)
    assert report.profiles.markdown(changed) == report.profiles.markdown(compare(before, after))
    page = report.profiles.html(before)
    assert page == report.profiles.html(before)
    assert page.count("<svg") == 8 and "://" not in page.replace("http://www.w3.org", "") and "<script" not in page
    text = report.profiles.markdown(before)
    for words in (
        "The device waits for batches",
        "input_cpu",
        "Where the time goes",
        "data loading",
        "ampere_sgemm_128x64_tn",
        "Copies" if before.copies else "Regions",
    ):
        assert words in text
    assert from_plain(ProfileComparison, to_plain(changed)) == changed


def test_names_of_others_cannot_break_out_of_a_report():
    evil = "kernel | <script>alert(1)</script> `x` \x1b[31m"
    summary = summarize(profile(trace([work(evil, 0, 100)])))
    assert "<script" not in report.profiles.html(summary) and "\x1b" not in report.profiles.html(summary)
    text = report.profiles.markdown(summary)
    assert "<script" not in text and "\x1b" not in text and "kernel \\|" in text


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "summary.json"
    path.write_text("{}")
    return path


def test_a_plan_to_publish_takes_names_from_options_then_environment(published):
    environment = {"WANDB_ENTITY": "team", "WANDB_PROJECT": "project", "WANDB_MODE": "offline"}
    planned = publish.plan(made(), [published], publish.Destination(project="mine", aliases=("best",)), environment)
    assert (planned.entity, planned.project, planned.aliases, planned.mode) == ("team", "mine", ("best",), "offline")
    assert planned.artifact_name == f"profile-summary-{made().digest[:12]}" and planned.metadata["digest"] == made().digest
    assert publish.plan(made(), [published], publish.Destination(), {}).aliases == ("latest",)
    with pytest.raises(UsageError, match="no such file"):
        publish.plan(made(), [published.with_name("gone")], publish.Destination(), {})
    with pytest.raises(UsageError, match="no name"):
        publish.plan(made(), [published], publish.Destination(artifact_name="a/b c"), {})


def test_publishing_without_wandb_login_or_project_is_one_line(published, monkeypatch):
    planned = publish.plan(made(), [published], publish.Destination(), {})
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match="needs the package wandb"):
        publish.publish(planned)
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(api=types.SimpleNamespace(api_key=None)))
    with pytest.raises(UsageError, match="no W&B login"):
        publish.publish(planned)
    with pytest.raises(UsageError, match="no W&B project"):
        publish.publish(replace(planned, mode="offline"))
