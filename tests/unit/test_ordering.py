"""The order of candidates: measured ceiling × chance ÷ cost, corrected by the log, and the same in findings and plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some
from knob_scenes import added, diagnosis, finding, loader, program, repeated, summary

from trainflash import knobs
from trainflash.schema import Candidate, Ceiling, Diagnosis, Location, LogEntry
from trainflash.workflow import ordering
from trainflash.workflow.ordering import Order, Price, chance, record


def worth(kind: str, speedup: float, *named: str):
    return replace(finding(kind, None, named), ceiling=Ceiling(speedup, "measured"))


def offered(knob: str, kind: str, risk: str = "same") -> Candidate:
    return Candidate(knob, "1", kind, None, risk, f"+{knob} {kind} {risk}\n", "because")


def experiment(n: int, knob: str, decision: str) -> LogEntry:
    return LogEntry(kind="experiment", at_utc="", what=knob, experiment=n, knob=knob, decision=decision)


def order(*findings, entries=(), **options) -> Order:
    return Order.of(diagnosis(*findings), entries, **options)


def names(candidates) -> list[str]:
    return [each.knob for each in candidates]


def test_the_larger_ceiling_comes_first():
    made = order(worth("evaluation", 1.2, "eval_batch_size"), worth("input_cpu", 3.0, "dataloader_workers"))
    assert names(made.sorted([offered("eval_batch_size", "evaluation"), offered("dataloader_workers", "input_cpu")])) == [
        "dataloader_workers", "eval_batch_size",
    ]  # fmt: skip


def test_a_small_gain_costs_more_starts():
    price = Price(start_s=10.0, check_s=20.0, noise_sd=0.05)
    assert price.of(2.0) == 60.0
    assert price.of(1.06) > price.of(1.2) >= price.of(2.0)
    assert price.of(1.0) == 20.0 + 16 * 10.0, "what can't be shown costs all looks"


def test_numerics_come_after_the_system_however_large():
    made = order(worth("precision", 5.0, "bf16"), worth("input_cpu", 1.1, "dataloader_workers"))
    assert names(made.sorted([offered("bf16", "precision", "numerics"), offered("dataloader_workers", "input_cpu")]))[-1] == "bf16"


def test_the_log_corrects_the_declared_chance():
    assert chance(0.5, (0, 0)) == 0.5
    assert chance(0.5, (0, 1)) == pytest.approx(1 / 3)
    assert chance(0.5, (2, 2)) == pytest.approx(0.75)
    both = [worth("input_cpu", 2.0, "pin_memory", "dataloader_workers")]
    candidates = [offered("pin_memory", "input_cpu"), offered("dataloader_workers", "input_cpu")]
    assert names(order(*both).sorted(candidates)) == names(candidates)
    failed = [experiment(1, "pin_memory", "rejected")]
    assert names(order(*both, entries=failed).sorted(candidates)) == ["dataloader_workers", "pin_memory"]


def test_only_decided_experiments_count_and_each_once():
    entries = [
        experiment(1, "a", "accepted"), experiment(1, "a", "rejected"), experiment(2, "a", "inconclusive"),
        LogEntry(kind="sandbox", at_utc="later", what="another sandbox"), experiment(1, "a", "accepted"),
        LogEntry(kind="note", at_utc="", what="a", experiment=1, knob="a"),
    ]  # fmt: skip
    assert record(entries) == {"a": (1, 2)}


def test_what_the_evidence_points_at_comes_before_what_only_answers_the_kind():
    made = order(worth("input_cpu", 2.0, "memoize_function"), entries=[experiment(n, "prefetch_factor", "accepted") for n in range(5)])
    sorted_ones = made.sorted([offered("prefetch_factor", "input_cpu"), offered("memoize_function", "input_cpu")])
    assert names(sorted_ones) == ["memoize_function", "prefetch_factor"]


def test_what_the_source_shows_at_the_line_comes_before_what_the_evidence_allows():
    made = order(worth("evaluation", 2.0, "eval_batch_size"))
    offers = [offered("eval_batch_size", "evaluation"), offered("asked_first", "evaluation")]
    assert names(made.sorted(offers)) == ["asked_first", "eval_batch_size"]


def test_rounding_without_agreement_has_a_smaller_chance():
    found = worth("optimizer", 1.5, "optimizer_fused")
    alone, agreed = order(found), order(found, allowed=frozenset({"numerics"}))
    assert alone.worth("optimizer_fused", "optimizer", "close").chance < agreed.worth("optimizer_fused", "optimizer", "close").chance


def test_a_finding_without_a_ceiling_counts_by_its_share():
    assert ordering.saved_share(replace(finding("host_code"), share=0.3)) == 0.3
    assert ordering.saved_share(worth("host_code", 4.0)) == 0.75


@given(
    some.lists(some.tuples(some.sampled_from([knob.name for knob in knobs.catalogue()]), some.booleans()), max_size=12),
    some.permutations(["memoize_function", "dataloader_workers", "prefetch_factor", "persistent_workers"]),
    some.integers(1, 4),
)
def test_findings_name_knobs_in_the_order_of_the_plan(history, mixed, cut):
    """Whatever the log says: of each finding the plan's knobs stand in the order of `knobs`, then `also`; apart from numerics, and from
    what the source must show first."""
    entries = [experiment(n, knob, "accepted" if paid else "rejected") for n, (knob, paid) in enumerate(history)]
    run = summary(loaders=(loader("train", Location("train.py", 2), num_workers=1),))
    told = ordering.with_knobs(diagnosis(worth("input_cpu", 2.0, *mixed[:cut])), run, entries)
    again = ordering.with_knobs(told, run, entries)
    assert again == told, "naming them twice changes nothing"
    [one] = told.findings
    listed = [*one.knobs, *one.also]
    assert set(one.knobs) <= set(mixed[:cut]) and not set(one.knobs) & set(one.also)
    plan = Order.of(told, entries).sorted([offered(name, "input_cpu") for name in sorted(listed)])
    ranks = [listed.index(each.knob) for each in plan if not knobs.get(each.knob).shown]
    assert ranks == sorted(ranks)


def test_what_a_run_rules_out_is_not_named(tmp_path):
    found = worth("optimizer", 1.5, "optimizer_foreach", "optimizer_fused")
    old = replace(summary(), versions={"torch": "2.3.0"})
    assert "optimizer_fused" not in ordering.with_knobs(diagnosis(found), old).findings[0].knobs
    assert "optimizer_fused" in ordering.with_knobs(diagnosis(found), summary()).findings[0].knobs


def test_plan_and_finding_agree_on_a_real_program(tmp_path):
    source = "from torch.utils.data import DataLoader\n\n\ndef parse(x):\n    return x\n\n\ntrain = DataLoader(ds, batch_size=4)\n"
    made = program(tmp_path, train_py=source)
    at = made.line("train.py", "def parse")
    run = summary(loaders=(loader("train", made.line("train.py", "train = ")),), repeated=(repeated(at, "parse"),))
    found = worth("input_cpu", 3.0, "memoize_function", "dataloader_workers")
    told = ordering.with_knobs(diagnosis(found), run)
    candidates, _, _ = made.plan(run, *told.findings)
    planned = list(dict.fromkeys(names(Order.of(told).sorted(candidates))))
    assert planned and planned == [name for name in (*told.findings[0].knobs, *told.findings[0].also) if name in planned]
    assert added(candidates[0])


def test_no_findings_no_order():
    empty: Diagnosis = diagnosis()
    assert Order.of(empty).sorted([]) == ()
    assert ordering.with_knobs(empty, summary()) == empty
