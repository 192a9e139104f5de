"""Each rule: a program that has the trouble, one just below the threshold, and one where the signal was not measured."""

from __future__ import annotations

from dataclasses import replace

import compute_scenarios as c
import machine_scenarios as m
import pytest
import scenarios as s
import site_scenarios as sites

from trainflash.diagnosis import DEFAULT, diagnose
from trainflash.diagnosis.rules import REPORTED, RULES
from trainflash.schema import (
    KINDS,
    Diagnosis,
    LineCost,
    Location,
    Setting,
    StartUp,
    Summary,
    Written,
    dump_json,
    from_plain,
    to_plain,
)


def kinds(summary: Summary) -> list[str]:
    return [finding.kind for finding in diagnose(summary).findings]


def without_phase(summary: Summary, name: str) -> Summary:
    return replace(summary, phases={key: stat for key, stat in summary.phases.items() if key != name})


def with_loader(summary: Summary, **changes) -> Summary:
    return replace(summary, loaders=(replace(summary.loaders[0], **changes),))


POSITIVE = {
    "input_cpu": s.slow_getitem(),
    "input_io": s.slow_disk(),
    "input_tail": s.late_batches(),
    "collate": s.slow_collate(),
    "worker_startup": s.restarted_workers(),
    "evaluation": s.evaluating(),
    "checkpoint": s.saving(),
    "logging": s.printing(),
    "debug_api": s.anomaly(),
    "thread_oversubscription": s.many_threads(),
    "host_code": s.busy_callback(),
    "optimizer": s.run(Opt=0.5),
    "padding": s.padded(),
    "startup": s.short_run(),
    "h2d": replace(s.run(H2D=0.4), device="cuda:NVIDIA H200"),
    "compute": s.healthy(),
    "sync_point": m.reading_tensors(),
    "launch_overhead": c.tiny_operators(),
    "shape_instability": m.searching_algorithms(),
    "recompilation": c.compiling(),
    "small_microbatch": c.tiny_micro_batches(),
    "recompute": c.checkpointed_blocks(),
    "attention_kernel": c.handmade_attention(),
    "precision": c.number_format(parameter_dtype="float64"),
    "memory_format": c.changing_layout(),
    "communication": m.talking_ranks(),
    "rank_straggler": m.late_rank(),
    "throttling": m.stopped_by_quota(),
    "memory_pressure": m.emptying_the_cache(),
    "garbage_collection": m.collecting(),
    "slow_operator": sites.calling("norm", 0.6, dim=0),
    "callback": sites.called_back(0.3),
    "growth": sites.growing(),
}
JUST_BELOW = {
    "input_cpu": s.slow_getitem(DEFAULT.listed - 0.001),
    "input_io": s.slow_disk(cpu=DEFAULT.io_cpu_share + 0.01),
    "input_tail": s.late_batches(usual=DEFAULT.tail_usual + 0.01),
    "collate": s.slow_collate(part=DEFAULT.collate_beside - 0.01),
    "worker_startup": s.restarted_workers(start_ms=DEFAULT.listed * 4000 / 5 - 2),
    "repeated_work": replace(s.slow_getitem(), repeated=(s.repeated(repeats=19),)),
    "evaluation": s.evaluating(DEFAULT.listed - 0.001),
    "checkpoint": s.saving(DEFAULT.listed - 0.001),
    "logging": s.printing(DEFAULT.listed - 0.001),
    "debug_api": replace(s.anomaly(), settings=(Setting("deterministic", "on", None),)),
    "thread_oversubscription": s.many_threads(2, waiting=DEFAULT.runqueue_wait - 0.01, uneven=5.0),
    "host_code": s.busy_callback(DEFAULT.dominant - 0.001),
    "optimizer": s.run(Opt=DEFAULT.optimizer - 0.001),
    "padding": s.padded(DEFAULT.padding - 0.01),
    "startup": s.short_run(startup_s=3.9),
    "h2d": replace(s.run(H2D=DEFAULT.listed - 0.001), device="cuda:NVIDIA H200"),
    "compute": s.slow_getitem(DEFAULT.dominant + 0.001),
    "sync_point": m.reading_tensors(DEFAULT.listed - 0.001),
    "launch_overhead": c.tiny_operators(small=0.0, mean_us=0.95 * 1000 * s.STEP_MS * (DEFAULT.launch_covered + 0.01) / 2500),
    "shape_instability": m.searching_algorithms(DEFAULT.shapes_many - 1),
    "recompilation": c.compiling(DEFAULT.listed - 0.001),
    "small_microbatch": c.tiny_micro_batches(overhead=DEFAULT.micro_overhead - 0.01),
    "recompute": c.checkpointed_blocks(used=DEFAULT.recompute_room + 0.01),
    "attention_kernel": c.handmade_attention(keys=DEFAULT.attention_keys - 1),
    "precision": c.number_format(),
    "memory_format": c.changing_layout(DEFAULT.layout_copies - 0.01),
    "communication": m.talking_ranks(DEFAULT.listed - 0.001),
    "rank_straggler": m.late_rank(ms=5.0 * DEFAULT.straggler),
    "throttling": m.stopped_by_quota(DEFAULT.listed - 0.001),
    "memory_pressure": m.stalled_for_memory(DEFAULT.listed - 0.001),
    "garbage_collection": m.collecting(DEFAULT.listed - 0.001),
    "slow_operator": sites.calling("norm", 2 * DEFAULT.dominant - 0.01, dim=0),
    "callback": sites.called_back(DEFAULT.dominant - 0.001),
    "growth": sites.growing(6.0 * DEFAULT.grown - 0.01),
    "worker_memory": sites.copying_workers(DEFAULT.worker_grown_mb - 1),
}
UNMEASURED = {
    "input_cpu": without_phase(s.slow_getitem(), "Data"),
    "input_io": s.slow_disk(cpu=None),
    "input_tail": with_loader(s.slow_getitem(), getitem_ms=None, collate_ms=None),
    "collate": with_loader(s.slow_collate(), collate_ms=None),
    "worker_startup": with_loader(s.restarted_workers(), start_ms=None, pass_ms=None),
    "repeated_work": s.slow_getitem(),
    "evaluation": without_phase(s.evaluating(), "Eval"),
    "checkpoint": without_phase(s.saving(), "Ckpt"),
    "logging": without_phase(s.printing(), "Log"),
    "debug_api": without_phase(without_phase(s.anomaly(), "Fwd"), "Bwd"),
    "thread_oversubscription": s.many_threads(cpus=None),
    "host_code": replace(s.busy_callback(0.2), sampled_s=None),
    "optimizer": without_phase(s.run(Opt=0.5), "Opt"),
    "padding": s.padded(None),
    "startup": replace(s.short_run(), startup_s=None),
    "h2d": s.run(H2D=0.4),
    "compute": s.run(steps=5),
    "sync_point": replace(m.reading_tensors(), sync_points=()),
    "launch_overhead": replace(c.tiny_operators(), operators=None),
    "shape_instability": replace(m.searching_algorithms(), input_shapes=None),
    "recompilation": replace(c.compiling(), compilation=None),
    "small_microbatch": c.tiny_micro_batches(used=None),
    "recompute": replace(c.checkpointed_blocks(), recompute=()),
    "attention_kernel": replace(c.handmade_attention(), attention=()),
    "precision": replace(c.number_format(parameter_dtype="float64"), numerics=None),
    "memory_format": replace(c.changing_layout(), operators=None),
    "communication": replace(m.talking_ranks(), communication=None),
    "rank_straggler": replace(m.late_rank(), rank_stats=()),
    "throttling": m.stopped_by_quota(None),
    "memory_pressure": m.stalled_for_memory(None),
    "garbage_collection": replace(m.collecting(), collections=None),
    "slow_operator": replace(sites.calling("norm", 0.6, dim=0), sites=()),
    "callback": replace(sites.called_back(0.3), sites=()),
    "growth": replace(sites.growing(), trend=None),
    "worker_memory": replace(sites.copying_workers(), worker_memory=None),
}


@pytest.mark.parametrize("kind", POSITIVE)
def test_the_trouble_is_found_first(kind):
    findings = diagnose(POSITIVE[kind]).findings
    assert findings[0].kind == kind
    assert findings[0].evidence


@pytest.mark.parametrize("kind", JUST_BELOW)
def test_just_below_the_threshold_it_is_not_reported(kind):
    assert kind not in kinds(JUST_BELOW[kind])


@pytest.mark.parametrize("kind", UNMEASURED)
def test_without_its_signal_a_rule_abstains(kind):
    assert kind not in kinds(UNMEASURED[kind])


def test_every_kind_that_is_reported_is_tried_three_ways():
    assert set(REPORTED) == set(POSITIVE) | {"repeated_work", "worker_memory"} == set(JUST_BELOW) == set(UNMEASURED)
    assert set(REPORTED) <= set(KINDS)


def test_repeated_work_stands_beside_the_input_that_it_causes():
    found = diagnose(replace(s.slow_getitem(), repeated=(s.repeated(0.55),)))
    assert [finding.kind for finding in found.findings] == ["input_cpu", "repeated_work"]
    assert found.findings[0].knobs[0] == "memoize_function"
    assert found.findings[1].location == Location("data.py", 30, "render")
    assert found.findings[0].tied_with == ()


def test_input_that_is_one_result_made_again_each_time_is_repeated_work_first():
    constant = s.repeated(0.55, repeats=99, distinct=1)
    assert (constant.calls, constant.distinct) == (100, 1)
    assert kinds(replace(s.slow_getitem(0.6), repeated=(constant,))) == ["repeated_work", "input_cpu"]
    assert kinds(replace(s.slow_getitem(0.8), repeated=(constant,))) == ["repeated_work", "input_cpu"]  # a third of it is something else
    assert kinds(replace(s.slow_getitem(0.98), repeated=(constant,))) == ["input_cpu", "repeated_work"]  # nearly half of it is
    for other in (s.repeated(0.55, repeats=98, distinct=1), s.repeated(0.55, repeats=99, distinct=2)):
        assert kinds(replace(s.slow_getitem(0.6), repeated=(other,))) == ["input_cpu", "repeated_work"]


def test_repeated_work_cannot_cost_more_than_the_waiting_that_it_causes():
    found = diagnose(replace(s.slow_getitem(0.3), repeated=(s.repeated(0.9, role="worker"),)))
    assert [finding.share for finding in found.findings] == pytest.approx([0.3, 0.27])  # a tenth of making a batch is collating


def test_repeated_work_in_the_loop_is_a_cost_of_its_own():
    busy = s.busy_callback(0.5)
    found = kinds(replace(busy, repeated=(s.repeated(0.45, location=Location("metrics.py", 5, "confusion"), qualname="confusion"),)))
    assert found[:2] == ["host_code", "repeated_work"]


def test_a_data_function_without_loader_is_input():
    finding = diagnose(s.hand_made_batches()).findings[0]
    assert finding.kind == "input_cpu"
    assert finding.location == Location("train.py", 21, "get_batch")
    assert "dataloader_workers" not in finding.knobs


def test_data_that_the_network_itself_makes_is_no_input():
    made = s.hand_made_batches()
    forward = LineCost("main", "Fwd", Location("train.py", 30, "get_batch"), 0.2)
    assert "input_cpu" not in kinds(replace(made, lines=(*made.lines, forward)))
    assert kinds(replace(made, lines=(*made.lines, replace(forward, location=Location("train.py", 30, "forward")))))[0] == "input_cpu"


def test_a_data_function_that_waits_is_bound_by_io():
    finding = diagnose(s.hand_made_batches(cpu_seconds=1.8)).findings[0]
    assert (finding.kind, finding.bound_by) == ("input_io", "io")


def test_waiting_for_a_core_is_not_waiting_for_a_disk():
    crowded = s.slow_disk(cpu=0.4)
    assert kinds(crowded)[0] == "input_io"
    assert kinds(replace(crowded, threads=replace(crowded.threads, runqueue_share=0.5)))[0] == "input_cpu"


def test_busy_workers_that_share_their_cores_still_compute():
    slow = s.slow_getitem()
    workers = [replace(s.loader(num_workers=2), fetch_cpu_share=share) for share in (DEFAULT.io_cpu_share_of_workers + 0.01, 0.05)]
    assert [kinds(replace(slow, loaders=(facts,)))[0] for facts in workers] == ["input_cpu", "input_io"]


def test_workers_of_an_evaluation_that_start_each_time():
    facts = s.loader(id=1, role="eval", num_workers=2, start_ms=s.spread(200.0, 8), first_batch_ms=s.spread(20.0, 8))
    evaluating = s.evaluating()
    alone = diagnose(evaluating).findings[0]
    started, evaluated = diagnose(replace(evaluating, loaders=(*evaluating.loaders, facts))).findings[:2]
    assert (started.kind, started.phase, evaluated.kind) == ("worker_startup", "Eval", "evaluation")  # the cause before its symptom
    assert evaluated.share == pytest.approx(alone.share - started.share)


def test_input_without_cpu_figures_is_named_and_says_what_is_unknown():
    finding = diagnose(s.slow_disk(cpu=None)).findings[0]
    assert finding.kind == "input_cpu"
    assert any("not measured" in str(row.value) for row in finding.evidence)


def test_input_is_located_at_the_hottest_line_of_the_hottest_function():
    assert diagnose(s.slow_getitem()).findings[0].location == s.GETITEM


def test_without_samples_input_is_located_at_the_dataset():
    assert diagnose(replace(s.slow_getitem(), lines=())).findings[0].location == Location("data.py", 10, "__getitem__")


def test_workers_that_cannot_keep_up_are_no_tail():
    assert kinds(s.late_batches(worker_batch_ms=30.0))[0] == "input_cpu"


def test_batches_as_late_as_everything_else_are_no_tail():
    late = s.late_batches()
    uneven = {name: replace(late.phases[name], p50_ms=late.phases[name].mean_ms - 2.0) for name in ("Fwd", "Bwd")}
    assert kinds(replace(late, phases=late.phases | uneven))[0] == "input_cpu"


def test_stalls_of_a_busy_machine_do_not_accuse_a_healthy_program():
    stalled = s.stalled()
    assert kinds(stalled) == ["compute"]
    idle = replace(stalled, threads=replace(stalled.threads, runqueue_share=0.01))
    assert set(kinds(idle)) >= {"host_code", "input_cpu"}


def test_a_slow_phase_on_a_busy_machine_is_found():
    crowded = s.slow_getitem()
    assert kinds(replace(crowded, threads=replace(crowded.threads, runqueue_share=0.7)))[0] == "input_cpu"


def test_prefetching_is_the_first_knob_against_a_tail_only_with_workers():
    assert diagnose(s.late_batches()).findings[0].knobs[0] == "prefetch_factor"
    assert diagnose(s.late_batches(workers=0)).findings[0].knobs == ("dataloader_workers",)


def test_buckets_come_first_where_nearly_every_batch_holds_a_long_row():
    assert diagnose(replace(s.padded(), common_padding_share=0.5)).findings[0].knobs == ("pad_to_longest", "group_by_length")
    found = diagnose(replace(s.padded(), common_padding_share=0.05)).findings[0]
    assert found.knobs == ("group_by_length", "pad_to_longest")
    assert next(row.value for row in found.evidence if "behind the longest" in row.name) == 5.0


def test_workers_that_cost_more_than_they_bring_are_to_go():
    def told(part):
        (finding,) = diagnose(with_loader(s.slow_getitem(), num_workers=4, made_of_waited=part)).findings[:1]
        return finding.knobs[0], [each.name for each in finding.evidence if each.name == "workers bring"]

    assert told(DEFAULT.made_alone - 0.01) == ("workers_off", ["workers bring"])
    assert told(DEFAULT.made_alone) == told(None) == ("dataloader_workers", [])


def test_restarted_workers_are_not_called_slow_input():
    found = diagnose(s.restarted_workers())
    assert found.findings[0].knobs[0] == "persistent_workers"
    assert found.findings[0].location == s.LOADER
    assert "input_cpu" not in [finding.kind for finding in found.findings]


def test_persistent_workers_are_started_once():
    assert "worker_startup" not in kinds(s.restarted_workers(persistent=True))


def test_collate_beside_input_that_is_nearly_as_large():
    assert kinds(s.slow_collate(part=0.4)) == ["input_cpu", "collate"]


@pytest.mark.parametrize(
    ("summary", "knobs"),
    [
        (s.evaluating(grad=True), ("eval_batch_size", "eval_cadence")),
        (s.evaluating(), ("eval_batch_size", "eval_cadence")),
        (s.evaluating(batch_size=256), ("eval_cadence",)),
        (s.evaluating(batch_size=None), ("eval_cadence",)),
        (s.evaluating(loaded=False), ("eval_cadence",)),  # batches that the program cuts itself
    ],
)
def test_the_knobs_of_an_evaluation_follow_from_how_it_is_done(summary, knobs):
    finding = diagnose(summary).findings[0]
    assert finding.knobs == knobs
    assert finding.location == Location("train.py", 70, "validate")


@pytest.mark.parametrize(
    ("kind", "reason", "knobs"),
    [
        ("hand_written", "", ()),
        ("math_fallback", "need_weights=True", ()),
        ("math_fallback", "fused kernels are switched off", ("fused_kernels_on",)),
        ("math_fallback", "3 dimensions, not 4", ()),
        ("math_fallback", "values have another head dimension than queries", ()),
    ],
)
def test_the_knobs_of_attention_follow_from_why_no_fused_kernel_runs(kind, reason, knobs):
    summary = c.handmade_attention(kind=kind)
    summary = replace(summary, attention=(replace(summary.attention[0], reason=reason),))
    assert diagnose(summary).findings[0].knobs == knobs


@pytest.mark.parametrize("reason", ["dropout on a CPU", "the mask needs a gradient, dropout on a CPU", "the weights are used"])
def test_attention_that_no_fused_kernel_can_do_is_no_finding(reason):
    summary = c.handmade_attention(kind="math_fallback")
    summary = replace(summary, attention=(replace(summary.attention[0], reason=reason),))
    assert kinds(summary)[0] == "compute"


def test_anomaly_mode_comes_first_while_forward_and_backward_dominate():
    assert kinds(s.anomaly(data=0.4))[:2] == ["debug_api", "input_cpu"]
    assert kinds(s.anomaly(data=0.7))[0] == "input_cpu"


def test_anomaly_mode_states_an_estimate_and_the_documented_bound():
    finding = diagnose(s.anomaly(data=0.0)).findings[0]
    work = 0.9
    assert finding.share == pytest.approx(work / 3)
    assert finding.ceiling.speedup == pytest.approx(1 / (1 - work * 0.9), abs=1e-3)
    assert finding.location == Location("trainer.py", 88, "fit")
    assert finding.knobs == ("anomaly_off",)


def test_blocking_launches_do_nothing_without_a_gpu():
    summary = replace(s.healthy(), settings=(Setting("blocking_launches", "1", None),))
    assert kinds(summary)[0] == "compute"
    assert kinds(replace(summary, device="cuda:NVIDIA H200"))[0] == "debug_api"


def test_as_many_threads_as_cores_are_accused_only_where_steps_suffer():
    assert kinds(s.many_threads(2)) == ["compute"]
    assert kinds(s.many_threads(2, waiting=0.5, uneven=1.1)) == ["compute"]
    assert kinds(s.many_threads(2, waiting=0.5, uneven=3.0))[0] == "thread_oversubscription"


def test_threads_of_all_ranks_share_the_cores():
    assert kinds(s.many_threads(1)) == ["compute"]
    assert kinds(replace(s.many_threads(2), ranks=2))[0] == "thread_oversubscription"


def test_threads_that_stand_idle_are_in_nobodys_way():
    assert kinds(s.many_threads(8, used=1.0)) == ["compute"]
    assert kinds(s.many_threads(8, used=None))[0] == "thread_oversubscription"
    assert kinds(s.many_threads(8, used=1.0, waiting=0.4))[0] == "thread_oversubscription"


def test_the_optimizer_is_ranked_by_what_can_be_saved():
    assert kinds(s.run(Opt=0.35, Eval=0.3)) == ["evaluation", "optimizer"]


def test_costs_are_ranked_and_added_up():
    found = diagnose(s.run(Data=0.2, Ckpt=0.3, Log=0.1))
    assert [finding.kind for finding in found.findings] == ["checkpoint", "input_cpu", "logging"]
    assert [finding.ceiling.speedup for finding in found.findings] == pytest.approx([1 / 0.7, 1 / 0.8, 1 / 0.9], abs=1e-3)
    assert [finding.ceiling.how for finding in found.findings] == ["bound"] * 3
    assert "3 costs together are 60 %" in found.notes[0] and "2.5 times" in found.notes[0]


def test_two_costs_within_the_tie_name_each_other():
    found = diagnose(s.run(Eval=0.3, Ckpt=0.28)).findings
    assert (found[0].kind, found[0].tied_with, found[1].tied_with) == ("evaluation", ("checkpoint",), ("evaluation",))
    assert diagnose(s.run(Eval=0.3, Ckpt=0.26)).findings[0].tied_with == ()


def test_a_healthy_program_is_not_accused():
    finding = diagnose(s.healthy()).findings[0]
    assert (finding.kind, finding.severity, finding.knobs, finding.ceiling) == ("compute", "none", (), None)


def test_small_costs_of_a_healthy_program_stand_behind():
    found = diagnose(s.run(Eval=0.08, Ckpt=0.06)).findings
    assert [(finding.kind, finding.severity) for finding in found] == [("compute", "none"), ("evaluation", "low"), ("checkpoint", "low")]


def test_pictures_written_inside_evaluations_are_a_log():
    picture, network = Location("gan.py", 60, "save_grid"), Location("gan.py", 95, "main")
    lines = (LineCost("main", "Eval", picture, 0.4), LineCost("main", "Eval", network, 0.1))
    run = replace(s.evaluating(0.5), lines=lines, written=(Written(picture, often=True, state=False),))
    found = diagnose(run).findings
    assert [(finding.kind, finding.phase) for finding in found] == [("logging", "Eval"), ("evaluation", "Eval")]
    assert found[0].location == picture and [finding.share for finding in found] == pytest.approx([0.4, 0.1])
    assert kinds(replace(run, written=(Written(picture, often=False, state=True),)))[0] == "checkpoint"
    for other in (Written(picture, often=False, state=False), Written(replace(picture, line=59), often=True, state=False)):
        assert kinds(replace(run, written=(other,))) == ["evaluation"]
    whole = replace(run, activities=tuple(replace(each, forwards=(picture,)) for each in run.activities))
    assert kinds(whole) == ["evaluation"]  # the line evaluates and writes: how long it writes is not known


def test_many_small_costs_are_not_healthy():
    small = s.run(Eval=0.09, Ckpt=0.09, Log=0.09)
    assert kinds(small) == ["evaluation", "checkpoint", "logging"]


def test_padding_is_made_where_batches_are_joined_and_without_a_loader_shown_where_it_is_computed():
    joins, built, forward = Location("data.py", 40, "pad"), Location("train.py", 9, "main"), Location("model.py", 12, "forward")
    lines = (LineCost("main", "Fwd", forward, 0.4),)
    (loader,) = with_loader(s.padded(), collate_location=joins).loaders
    assert diagnose(replace(s.padded(), loaders=(loader,), lines=lines)).findings[0].location == joins
    helper = replace(joins, line=60, function="fill")
    assert diagnose(replace(s.padded(), loaders=(replace(loader, joined_at=helper),), lines=lines)).findings[0].location == helper
    library = replace(loader, collate_location=None, location=built)
    assert diagnose(replace(s.padded(), loaders=(library,), lines=lines)).findings[0].location == built
    trained = LineCost("main", "Data", Location("train.py", 30, "main"), 0.1, "collate")
    made = replace(library, collator_made_at=Location("data.py", 7, "collator"))
    assert diagnose(replace(s.padded(), loaders=(made,), lines=(*lines, trained))).findings[0].location == made.collator_made_at
    assert diagnose(replace(s.padded(), loaders=(), data_function=None, lines=lines)).findings[0].location == forward
    generator, taken = Location("data.py", 20, "batches"), LineCost("main", "Data", Location("data.py", 33, "take"), 0.05)
    assert diagnose(replace(s.padded(), loaders=(), data_function=generator, lines=lines)).findings[0].location == generator
    assert diagnose(replace(s.padded(), loaders=(), data_function=generator, lines=(*lines, taken))).findings[0].location == taken.location


def test_startup_gives_way_to_whatever_dominates_the_steady_part():
    found = diagnose(replace(s.slow_getitem(), startup_s=6.0, wall_s=10.0))
    assert [finding.kind for finding in found.findings] == ["input_cpu", "startup"]
    assert any("start-up is 60 %" in note for note in found.notes)


def test_startup_of_a_healthy_program_leads_only_where_little_else_happens():
    assert kinds(s.short_run(startup_s=15.9)) == ["compute", "startup"]
    assert kinds(s.short_run(startup_s=16.1)) == ["startup"]


def test_startup_names_the_line_of_the_programs_own_work_and_none_for_imports():
    line = Location("prepare.py", 7, "sort_all")
    own = StartUp(own_s=30.0, importing_s=2.0, lines=((line, 28.0), (Location("prepare.py", 9, "sort_all"), 2.0)))
    run = s.short_run(startup_s=36.0)
    (found,) = diagnose(replace(run, startup=own)).findings
    assert (found.kind, found.location) == ("startup", line)
    (found,) = diagnose(replace(run, startup=replace(own, own_s=8.9))).findings
    assert (found.kind, found.location) == ("startup", None)


def test_startup_that_is_the_programs_own_work_leads_what_dominates_less():
    run = replace(s.slow_getitem(), startup_s=8.0, wall_s=10.0)
    own = StartUp(own_s=7.0, importing_s=0.5, lines=((Location("prepare.py", 7, "sort_all"), 7.0),))
    steady = diagnose(run).findings[0].share
    assert kinds(run) == ["input_cpu", "startup"] and steady < 0.8
    assert kinds(replace(run, startup=own)) == ["startup", "input_cpu"]
    assert kinds(replace(run, startup=replace(own, own_s=4.9))) == ["input_cpu", "startup"]


def test_a_run_that_we_cut_short_says_nothing_about_startup():
    assert "startup" not in kinds(replace(s.short_run(), stopped=True))


def test_too_few_steps_abstain_and_say_how_many_are_needed():
    found = diagnose(replace(s.run(steps=9, Data=0.9), stopped=True))
    assert found.findings == ()
    assert "only 9 steps" in found.abstained and "at least 10" in found.abstained
    assert diagnose(s.run(steps=10, Data=0.9)).abstained is None
    assert "ended by itself" in diagnose(s.run(steps=9, Data=0.9)).abstained


def test_a_run_too_short_for_shares_can_still_be_all_startup():
    found = diagnose(replace(s.short_run(), steps=3, startup_s=9.0, wall_s=10.0))
    assert (found.abstained is not None, [finding.kind for finding in found.findings]) == (True, ["startup"])


def test_a_long_startup_outweighs_what_three_steps_could_show():
    short = replace(s.short_run(startup_s=16.1), steps=3)
    assert diagnose(short).abstained is None
    assert [finding.kind for finding in diagnose(short).findings] == ["startup"]


def test_code_of_a_class_that_opens_a_file_for_writing_is_logging():
    busy = s.busy_callback(0.5)
    where = next(line.location for line in busy.lines if line.phase == "Other")
    journal = replace(where, function="Journal.add")
    logging = replace(busy, lines=tuple(replace(line, location=journal) if line.location == where else line for line in busy.lines))
    opened = (Written(replace(where, function="Journal.__init__"), often=False),)
    assert kinds(replace(logging, written=opened)) == ["logging"]
    assert kinds(logging) == ["host_code"]
    assert kinds(replace(busy, written=(Written(replace(where, function="main"), often=False),))) == ["host_code"]


def test_unexplained_time_that_could_lead_makes_the_diagnosis_abstain():
    found = diagnose(s.busy_callback(0.5, found=0.1))
    assert found.findings == () and "45 %" in found.abstained
    assert "sample lines" in diagnose(replace(s.busy_callback(0.5), sampled_s=None)).abstained


def test_unexplained_time_does_not_hide_what_is_certainly_larger():
    found = diagnose(s.run(Data=0.6, Other=0.3))
    assert (found.abstained, found.findings[0].kind) == (None, "input_cpu")


def test_unexplained_time_just_below_the_threshold_is_tolerated():
    assert diagnose(s.run(Other=DEFAULT.unexplained)).abstained is None
    assert diagnose(s.run(Other=DEFAULT.unexplained + 0.001)).abstained is not None


def test_near_costs_of_an_unsteady_run_tie():
    near = s.run(Eval=0.4, Ckpt=0.3, Log=0.08)
    found = diagnose(replace(near, steady=False))
    assert (found.findings[0].kind, found.findings[0].tied_with) == ("evaluation", ("checkpoint",))
    assert found.abstained is None and any("never settled" in note for note in found.notes)
    assert diagnose(near).findings[0].tied_with == ()
    assert diagnose(replace(s.slow_getitem(), steady=False)).findings[0].tied_with == ()


def test_an_unsteady_run_that_only_computes_is_healthy():
    found = diagnose(replace(s.run(Data=0.01), steady=False))
    assert (found.abstained, found.findings[0].kind) == (None, "compute")
    assert any("never settled" in note for note in found.notes)


def test_lines_on_a_gpu_may_only_wait_for_it():
    gpu = replace(s.busy_callback(0.2), device="cuda:NVIDIA H200")
    found = diagnose(gpu)
    assert "host_code" not in [finding.kind for finding in found.findings]
    assert any("device times were not recorded" in note for note in found.notes)


def test_an_evaluation_of_a_fifth_is_listed_behind_a_healthy_program():
    found = diagnose(s.run(Eval=0.21)).findings
    assert [finding.kind for finding in found] == ["compute", "evaluation"]
    assert "no other cost but evaluation (21 %) reaches 10 %" in found[0].summary
    assert kinds(s.run(Eval=0.26))[0] == "evaluation"


def test_an_evaluation_that_wastes_its_forwards_is_a_cost_from_a_seventh_on():
    as_large = s.loader().batch_size
    assert kinds(s.evaluating(0.16))[0] == "evaluation"  # row by row
    assert kinds(s.evaluating(0.14))[0] == "compute"
    assert kinds(s.evaluating(0.16, batch_size=as_large))[0] == "compute"
    assert kinds(s.evaluating(0.16, grad=True, batch_size=as_large))[0] == "compute"  # no_grad would make it a fifth cheaper


def test_an_evaluation_after_the_last_step_is_mentioned():
    summary = replace(s.healthy(), activities=(replace(s.evaluating().activities[0], count=1, mean_ms=2000.0),))
    assert any(note.startswith("Eval: 1 times, 2.0 s") for note in diagnose(summary).notes)


def test_rules_claim_nothing_for_a_summary_that_measured_nothing():
    nothing = replace(s.run(), phases={}, coverage=1.0, loaders=(), threads=None, sampled_s=None, startup_s=None, steady=None)
    assert kinds(nothing) == ["compute"]
    assert len(RULES) == len(set(RULES))


@pytest.mark.parametrize("kind", POSITIVE)
def test_a_diagnosis_survives_its_file(kind):
    found = diagnose(POSITIVE[kind])
    assert dump_json(found)
    assert from_plain(Diagnosis, to_plain(found)) == found


def test_workers_far_ahead_are_not_blamed_for_handing_batches_over():
    ahead = s.loader(num_workers=2, getitem_ms=s.spread(0.1), collate_ms=s.spread(0.3))
    assert kinds(replace(s.run(Data=0.15), loaders=(ahead,))) == ["compute"]
    behind = replace(ahead, getitem_ms=s.spread(2 * s.STEP_MS))
    assert kinds(replace(s.run(Data=0.15), loaders=(behind,)))[0] == "input_cpu"
    assert kinds(replace(s.run(Data=0.5), loaders=(ahead,)))[0] != "compute"


def test_a_profiler_is_charged_with_its_own_calls_and_host_code_is_not():
    where = Location("train.py", 40, "main")
    busy = replace(s.busy_callback(0.8), settings=(Setting("profiler", "active", where, share=0.75),))
    first, *others = diagnose(busy).findings
    assert (first.kind, first.location) == ("debug_api", where)
    assert "host_code" not in [finding.kind for finding in others]
    unmeasured = replace(busy, settings=(Setting("profiler", "active", where),))
    assert kinds(unmeasured)[0] == "host_code"
