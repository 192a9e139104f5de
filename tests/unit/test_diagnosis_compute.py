"""Rules about the network, the optimizer and number formats: what each rests on, and programs that it must leave alone."""

from __future__ import annotations

from dataclasses import replace

import compute_scenarios as c
import machine_scenarios as m
import pytest
import scenarios as s

from trainflash.diagnosis import DEFAULT, diagnose
from trainflash.schema import Compilation, Finding, FrozenRepeat, IgnoredTargets, InVain, LineCost, Location, Summary, ThinProducts


def kinds(summary: Summary) -> list[str]:
    return [finding.kind for finding in diagnose(summary).findings]


def first(summary: Summary) -> Finding:
    return diagnose(summary).findings[0]


def evidence(finding: Finding) -> str:
    return "; ".join(f"{row.name} {row.value}" for row in finding.evidence)


def test_the_optimizer_is_named_where_it_is_built_with_how_it_works():
    finding = first(c.heavy_update(foreach=False))
    assert finding.location == c.OPTIMIZER_LINE
    assert finding.knobs == ("optimizer_foreach", "optimizer_fused")
    assert "one tensor after the other" in evidence(finding) and "parameter tensors 24" in evidence(finding)


@pytest.mark.parametrize(("hot", "told"), [("Ball.project", True), ("BallSGD.step", False)])
def test_work_that_the_owner_s_class_adds_to_an_optimizer_of_torch_s_is_named_where_it_is_done(hot, told):
    made, work = Location("norms.py", 27, "BallSGD.__init__"), Location("norms.py", 20, hot)
    run = c.heavy_update(optimizer="BallSGD", location=made, foreach=False)
    assert first(replace(run, lines=(LineCost("main", "Opt", work, 0.3),))).location == (work if told else made)


def test_an_update_written_by_hand_is_known_whatever_its_class_is_called():
    made, work = Location("optim.py", 9, "Adagrad.__init__"), Location("optim.py", 25, "Adagrad.step")
    run = c.heavy_update(optimizer="Adagrad", location=made, package="larder")
    found = first(replace(run, lines=(LineCost("main", "Opt", work, 0.3),)))
    assert found.location == work and "Adagrad, written by hand" in evidence(found)
    assert found.knobs == ()
    assert "written by hand" not in evidence(first(c.heavy_update(optimizer="LBFGS")))


def test_operator_calls_of_the_optimizer_are_evidence():
    assert "operator calls in the optimizer, per step 20" in evidence(first(replace(c.heavy_update(), operators=c.operators())))


def test_an_update_that_a_fused_one_would_shorten_a_little_is_listed_and_does_not_lead():
    run = c.heavy_update()
    small = replace(run, phases={**run.phases, "Opt": replace(run.phases["Opt"], share=0.15)})
    assert kinds(small) == ["compute", "optimizer"]
    assert kinds(replace(small, updates=replace(run.updates, optimizer="LBFGS"))) == ["compute"]


def test_a_fused_optimizer_has_nothing_left_to_gain():
    assert "optimizer" not in kinds(c.heavy_update(fused=True))


@pytest.mark.parametrize(
    ("changes", "knobs"),
    [
        ({"foreach": True}, ("optimizer_fused",)),
        ({"optimizer": "RMSprop"}, ("optimizer_foreach",)),
        ({"optimizer": "Lion"}, ()),
        ({"zero_to_none": False}, ("optimizer_foreach", "optimizer_fused")),
    ],
)
def test_the_knobs_of_an_optimizer_follow_from_what_it_can_do(changes, knobs):
    assert first(c.heavy_update(**changes)).knobs == knobs


def test_micro_batches_are_named_where_their_loader_is_built():
    finding = first(c.tiny_micro_batches())
    assert finding.location == s.LOADER
    assert finding.share == pytest.approx(0.89 * 7 / 8 * finding_overhead(), abs=0.02)


def test_convolutions_cost_more_however_few_their_rows():
    found = c.tiny_micro_batches(backwards=16.0, rows=2, overhead=DEFAULT.micro_overhead - 0.1)
    plain = replace(found.operators, per_step=1000 * found.operators.op_ms / 50.0)  # of 50 µs each
    convolved = replace(plain, conv_per_step=0.2 * plain.per_step)
    large = replace(convolved, per_step=plain.per_step / 10, conv_per_step=0.2 * plain.per_step / 10)
    named = ["small_microbatch" in kinds(replace(found, operators=each)) for each in (plain, convolved, large)]
    assert named == [False, True, False]


def test_products_of_few_rows_cost_their_matrices():
    found = c.tiny_micro_batches(backwards=16.0, rows=2, overhead=DEFAULT.micro_overhead - 0.1)
    thin = replace(found.operators, thin=(ThinProducts(2, 0.5),))  # two thirds of it stay however few the rows
    other = replace(found.operators, thin=(ThinProducts(10, 0.5),))  # a narrow head, on many rows
    added = replace(found.operators, accumulated_share=0.3)
    named = ["small_microbatch" in kinds(replace(found, operators=each)) for each in (found.operators, thin, other, added)]
    assert named == [False, True, False, True]


def test_micro_batches_of_a_generator_are_known_by_their_forwards():
    assert first(c.unseen_micro_batches()).kind == "small_microbatch"
    few = DEFAULT.micro_parts - 1
    for losses in (c.unseen_micro_batches(forwards=1.0), c.unseen_micro_batches(backwards=few, forwards=few)):
        assert "small_microbatch" not in kinds(losses)


def finding_overhead() -> float:
    return 1 - 0.3 / 0.98


@pytest.mark.parametrize(
    "healthy",
    [
        c.tiny_micro_batches(backwards=1.0),
        c.tiny_micro_batches(rows=DEFAULT.micro_rows + 1),
        c.tiny_micro_batches(used=DEFAULT.recompute_room + 0.01),
        c.tiny_micro_batches(optimizers=2),
        replace(c.tiny_micro_batches(), operators=None),
    ],
    ids=["one backward", "large ones", "memory taken", "two optimizers", "no census"],
)
def test_accumulation_that_has_its_reasons_is_left_alone(healthy):
    assert "small_microbatch" not in kinds(healthy)


@pytest.mark.parametrize(("longer", "named"), [(0.9, True), (1.1, False)])
def test_fewer_fixed_costs_suffice_where_operators_are_short_in_the_mean(longer, named):
    found = c.tiny_micro_batches(overhead=DEFAULT.micro_overhead - 0.05)
    per_step = 1000 * found.operators.op_ms / (longer * DEFAULT.micro_call_us / DEFAULT.micro_overhead)
    short = replace(found, operators=replace(found.operators, per_step=per_step))
    assert ("small_microbatch" in kinds(short)) is named


def test_two_losses_of_one_batch_are_no_accumulation():
    found = c.tiny_micro_batches(backwards=2.0, rows=32)
    one_batch = replace(found.phases["Data"], per_occurrence=s.spread(0.1, s.STEPS))
    assert "small_microbatch" not in kinds(replace(found, phases=found.phases | {"Data": one_batch}))


def test_parts_of_one_batch_are_accumulation():
    found = c.tiny_micro_batches(backwards=8.0, rows=4)
    one_batch = replace(found.phases["Data"], per_occurrence=s.spread(0.1, s.STEPS))
    parts = replace(found, phases=found.phases | {"Data": one_batch}, loaders=(s.loader(batch_size=32),))
    assert kinds(parts)[0] == "small_microbatch"


def test_batches_that_a_trainer_fetches_all_at_once_are_accumulated():
    found = c.tiny_micro_batches(backwards=8.0, rows=4)
    at_once = replace(found.phases["Data"], per_occurrence=s.spread(0.1, s.STEPS))
    loader = replace(s.loader(batch_size=4), collate_ms=s.spread(0.1, 8 * s.STEPS))
    assert kinds(replace(found, phases=found.phases | {"Data": at_once}, loaders=(loader,)))[0] == "small_microbatch"
    one_each = replace(loader, collate_ms=s.spread(0.1, s.STEPS))
    assert "small_microbatch" not in kinds(replace(found, phases=found.phases | {"Data": at_once}, loaders=(one_each,)))


def test_attention_is_ranked_by_what_a_fused_kernel_saves_of_it():
    finding = first(c.handmade_attention(0.5))
    assert finding.share == pytest.approx(0.5 * DEFAULT.attention_saving)
    assert finding.location == c.ATTENTION_LINE
    assert "4 × 8 × 256 × 256" in evidence(finding)


def test_a_fallback_says_why():
    finding = first(c.handmade_attention(kind="math_fallback"))
    assert "fallback of scaled_dot_product_attention" in finding.summary
    assert "a mask and need_weights" in evidence(finding)


def test_a_little_attention_is_healthy():
    assert kinds(c.handmade_attention(0.2))[0] == "compute"


def test_weights_that_are_used_elsewhere_need_the_whole_matrix():
    found = c.handmade_attention(0.5)
    assert kinds(replace(found, attention=(replace(found.attention[0], reason="the weights are used"),)))[0] == "compute"


def test_forward_work_that_one_step_does_again():
    finding = first(c.repeated_forward())
    assert (finding.kind, finding.phase, finding.location, finding.share) == ("recompute", "Fwd", c.CHECKPOINT_LINE, 0.4)
    assert finding.knobs == ()  # no switch takes it away
    assert kinds(c.repeated_forward(share=DEFAULT.listed - 0.001)) == ["compute"]


def test_recomputing_names_line_and_memory():
    finding = first(c.checkpointed_blocks())
    assert finding.location == c.CHECKPOINT_LINE
    assert "memory used 10.0" in evidence(finding)


def test_recomputing_with_unknown_memory_says_that_it_is_unknown():
    assert "memory used not measured" in evidence(first(c.checkpointed_blocks(used=None)))


def test_recompiling_names_the_function_and_torchs_reasons():
    finding = first(c.compiling())
    assert finding.location == c.COMPILED
    assert "self.scale == 0.5" in evidence(finding)
    assert "shape_instability" not in kinds(c.compiling())


def test_changing_shapes_stand_beside_the_recompiling_that_they_cause():
    found = diagnose(c.compiling(by_shape=True))
    assert [finding.kind for finding in found.findings] == ["recompilation", "shape_instability"]
    assert found.findings[1].location == s.LOADER
    assert found.together is not None and found.together.speedup == pytest.approx(1 / 0.6, abs=0.01)


def test_compiling_during_the_warm_up_is_no_cost():
    warm = Compilation(3, 0, 0.0, 900.0, 2)
    assert kinds(replace(s.healthy(), compilation=warm)) == ["compute"]


def test_a_reached_recompile_limit_is_told():
    found = c.compiling()
    assert "runs uncompiled" in evidence(first(replace(found, compilation=replace(found.compilation, limit_hit=True))))


def test_cudnn_searching_again_needs_benchmark_convolutions_and_a_gpu():
    assert kinds(m.searching_algorithms())[0] == "shape_instability"
    found = m.searching_algorithms()
    assert "shape_instability" not in kinds(replace(found, numerics=replace(found.numerics, cudnn_benchmark=False)))
    assert "shape_instability" not in kinds(replace(found, device="cpu"))


def test_convolutions_that_a_cpu_sets_up_for_each_new_shape():
    def found(shapes=40, **changes):
        census = c.operators(**({"setup_ms": 1.0, "set_up": 4.0} | changes))
        return replace(s.healthy(), operators=census, numerics=c.numerics(convolutions=4), input_shapes=shapes)

    finding = first(found())
    assert (finding.kind, finding.phase) == ("shape_instability", "Fwd")
    assert finding.share == pytest.approx(DEFAULT.setup_whole * 1.0 / s.STEP_MS)
    assert "set up in a step, forward 4" in evidence(finding)
    for calm in (found(shapes=3), found(setup_ms=0.1), found(setup_ms=None, set_up=None)):
        assert kinds(calm) == ["compute"]


@pytest.mark.parametrize("name", ["anomaly_mode", "profiler", "gradcheck", "python_tracing", "tracemalloc", "compile_debug"])
def test_every_debugging_aid_is_named_with_its_line(name):
    finding = first(c.debug(name))
    assert (finding.kind, finding.location) == ("debug_api", Location("train.py", 33, "main"))


@pytest.mark.parametrize("name", ["deterministic", "fill_uninitialized_memory", "a setting of tomorrow"])
def test_settings_that_are_no_debugging_aids_are_left_alone(name):
    assert kinds(c.debug(name)) == ["compute"]


@pytest.mark.parametrize("name", ["dev_mode", "malloc_debug", "verbose_logs"])
def test_light_debugging_aids_are_listed_behind(name):
    assert kinds(c.debug(name)) == ["compute", "debug_api"]


def test_a_trace_function_slows_the_dataset_too():
    traced = replace(s.slow_getitem(0.6), settings=c.debug("python_tracing").settings)
    assert kinds(traced)[0] == "debug_api"
    profiled = replace(s.slow_getitem(0.6), settings=c.debug("profiler").settings)
    assert kinds(profiled)[0] == "input_cpu"


def test_anomaly_mode_is_estimated_dearer_than_a_profiler():
    assert first(c.debug("anomaly_mode")).share > first(c.debug("profiler")).share


@pytest.mark.parametrize(
    "slow",
    [
        {"parameter_dtype": "float64"},
        {"parameter_dtype": "torch.float64"},
        {"autocast": "float16"},
        {"parameter_dtype": "bfloat16", "bf16_supported": False},
    ],
)
def test_number_formats_that_a_cpu_pays_for(slow):
    assert first(c.number_format(**slow)).kind == "precision"


@pytest.mark.parametrize("fine", [{}, {"autocast": "bfloat16"}, {"autocast": "bfloat16", "bf16_supported": None}])
def test_number_formats_that_a_cpu_runs_well(fine):
    assert kinds(c.number_format(**fine)) == ["compute"]


@pytest.mark.parametrize(("optimizer", "kind"), [("Adam", "precision"), ("LBFGS", "compute")])
def test_float64_is_what_differences_of_gradients_need(optimizer, kind):
    summary = c.number_format(parameter_dtype="float64")
    updates = c.heavy_update().updates
    assert first(replace(summary, updates=replace(updates, optimizer=optimizer))).kind == kind


def test_float64_in_tiny_operators_costs_nothing_worth_a_word():
    summary = replace(c.number_format(parameter_dtype="float64"), operators=c.operators(small_share=0.95))
    assert "precision" not in kinds(summary)


@pytest.mark.parametrize(("share", "small", "named"), [(0.8, 0.1, True), (0.3, 0.25, False), (0.05, 0.0, False)])
def test_float64_in_a_part_of_the_step_is_named_where_it_begins(share, small, named):
    summary = c.number_format()
    line = Location("losses.py", 31, "distance")
    summary = replace(summary, operators=c.operators(small_share=small, double_share=share, double_at=line))
    if not named:
        assert kinds(summary) == ["compute"]
        return
    found = first(summary)
    assert (found.kind, found.location, found.knobs) == ("precision", line, ())
    computing = summary.phases["Fwd"].share + summary.phases["Bwd"].share
    assert found.share == pytest.approx(DEFAULT.double_saving * (share - small) * computing)


def test_full_float32_on_ampere_and_later():
    assert first(m.full_float32()).kind == "precision"


@pytest.mark.parametrize(
    "changes",
    [
        {"capability": (7, 5)},
        {"capability": None},
        {"autocast": "bfloat16"},
        {"tf32_matmul": True},
        {"matmul_precision": "high"},
        {"parameter_dtype": "bfloat16"},
    ],
    ids=str,
)
def test_a_gpu_that_uses_its_tensor_cores_or_has_none(changes):
    assert "precision" not in kinds(m.full_float32(**changes))


def test_precision_does_not_help_a_gpu_that_waits_for_the_host():
    assert "precision" not in kinds(m.on_gpu(m.full_float32(), lag=0.0))


def test_half_precision_convolutions_in_nchw():
    found = first(m.half_precision_cnn())
    assert found.kind == "memory_format"
    assert "channels_last" in found.summary and "cudnn.benchmark is off" in found.summary


def test_a_deterministic_program_is_not_told_to_autotune():
    assert "cudnn.benchmark" not in " ".join(finding.summary for finding in diagnose(m.half_precision_cnn(deterministic=True)).findings)


def test_a_layout_alone_is_no_fault_on_a_cpu():
    assert kinds(c.number_format(convolutions=12, channels_last=False)) == ["compute"]


def test_a_layout_that_was_tried_and_is_undone_in_each_block():
    found = first(c.undone_layout())
    assert (found.kind, found.location) == ("memory_format", c.CHECKPOINT_LINE) and "9 tensors a step" in found.summary
    more = first(c.undone_layout(saving=0.6))
    assert more.share > found.share > 0.2
    for other in (c.undone_layout(saving=-0.1), c.undone_layout(saving=0.05, per_step=1.0)):
        assert kinds(other) == ["compute"]


def test_a_weight_that_lies_turned_round_makes_copies_of_its_gradient():
    found = first(replace(c.changing_layout(0.3), numerics=c.numerics(turned="Embedding.weight (34731 × 64)")))
    assert (found.kind, found.phase) == ("memory_format", "Bwd") and "Embedding.weight (34731 × 64)" in found.summary
    assert "memory_format" not in kinds(replace(c.changing_layout(0.02), numerics=c.numerics(turned="Embedding.weight (34731 × 64)")))


def test_copies_without_convolutions_are_no_layout_trouble():
    found = c.changing_layout()
    assert "memory_format" not in kinds(replace(found, numerics=c.numerics()))


def test_tiny_operators_on_a_cpu():
    finding = first(c.tiny_operators())
    assert (finding.kind, finding.bound_by) == ("launch_overhead", "host")


def test_operators_are_no_longer_than_a_usual_step_leaves_for_each():
    recorded = c.tiny_operators(per_step=5000, mean_us=9.0, small=0.95)

    def seen(per_step):
        census = replace(recorded.operators, per_step=per_step, op_ms=7 * recorded.operators.op_ms, step_ms=8 * recorded.operators.step_ms)
        return first(replace(recorded, operators=census))

    computing_us = 1000 * sum(stat.mean_ms for name, stat in recorded.phases.items() if name in ("Fwd", "Bwd", "Opt"))
    tiny = seen(computing_us / (DEFAULT.launch_usual_us - 0.1))
    assert tiny.kind == "launch_overhead"
    assert next(row.value for row in tiny.evidence if row.name == "mean operator") < DEFAULT.launch_usual_us
    assert seen(computing_us / (DEFAULT.launch_usual_us + 0.1)).kind == "compute", "a GRU's backward"


@pytest.mark.parametrize(
    "healthy",
    [
        c.tiny_operators(per_step=DEFAULT.launch_operators_cpu + 19),
        c.tiny_operators(mean_us=DEFAULT.launch_mean_us + 0.1),
        c.tiny_operators(mean_us=3.0, small=0.1),
        replace(c.tiny_operators(), numerics=c.numerics(compiled=True)),
    ],
    ids=["few but for the optimizer's", "large", "larger ones cover the step", "compiled"],
)
def test_a_small_healthy_network_is_not_accused_of_launching(healthy):
    assert kinds(healthy) == ["compute"]


def test_a_network_of_few_tiny_operators_is_not_told_that_nothing_is_to_be_gained():
    few = first(c.tiny_operators(per_step=DEFAULT.launch_operators_cpu - 100, mean_us=3.0))
    assert (few.kind, few.severity) == ("compute", "none")
    assert "900 operators a step, 3 µs each" in few.summary and "larger batch" in few.summary and "healthy" not in few.summary


@pytest.mark.parametrize(
    "healthy",
    [
        c.tiny_operators(per_step=DEFAULT.launch_operators_cpu - 100, mean_us=DEFAULT.tiny_mean_us + 0.1),
        c.tiny_operators(per_step=600, mean_us=10.0, small=0.2),
        replace(c.tiny_operators(per_step=900), numerics=c.numerics(compiled=True)),
        replace(c.tiny_operators(), operators=None),
    ],
    ids=["large", "larger ones cover the step", "compiled", "no census"],
)
def test_a_network_that_computes_is_healthy(healthy):
    assert first(healthy).summary.startswith("healthy:")


def test_launching_gives_way_to_what_makes_operators_many():
    tiny = c.tiny_operators()
    heavy = s.run(Opt=0.5)
    found = kinds(replace(tiny, phases=heavy.phases))
    assert found[:2] == ["optimizer", "launch_overhead"]


def test_so_little_time_for_each_of_many_operators_goes_into_calling_them():
    recorded = c.tiny_operators(mean_us=5.0, small=DEFAULT.launch_small)  # longer in the record than in the step, which has 4 µs for each
    assert kinds(recorded)[0] == "launch_overhead"
    assert kinds(c.tiny_operators(mean_us=5.0, small=DEFAULT.launch_small - 0.01)) == ["compute"]


def test_tiny_operators_that_lose_their_core_are_tiny_all_the_same():
    stretched = c.tiny_operators(mean_us=3.5, small=0.2)
    assert kinds(stretched) == ["compute"]
    crowded = replace(stretched, threads=replace(stretched.threads, runqueue_share=0.6))
    assert kinds(crowded)[0] == "launch_overhead"


@pytest.mark.parametrize("phase", ["Fwd", "Bwd"])
def test_a_hook_inside_the_network_is_the_programs_own_code(phase):
    finding = first(c.hook_in_network(phase=phase))
    assert (finding.kind, finding.phase, finding.location) == ("host_code", phase, c.HOOK)
    assert finding.share == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    "changes",
    [
        {"operators": None},
        {"lines": ()},
        {"ranks": 2},
        {"device": m.GPU},
        {"numerics": c.numerics(compiled=True)},
        {"operators": c.operators(per_step=200.0, op_ms=1.0)},
    ],
    ids=["no census", "no lines", "ranks", "gpu", "compiled", "many operators"],
)
def test_time_in_the_network_that_may_be_operators_is_not_called_host_code(changes):
    assert "host_code" not in kinds(replace(c.hook_in_network(), **changes))


def test_python_that_only_one_of_the_censuses_shows_is_not_called_host_code():
    seen = c.hook_in_network()
    assert "host_code" not in kinds(replace(seen, operators=replace(seen.operators, op_share=0.9)))
    assert "host_code" in kinds(replace(seen, operators=replace(seen.operators, op_share=seen.operators.op_ms / seen.operators.step_ms)))


def test_a_stretched_step_of_a_busy_machine_is_not_called_host_code():
    slow = c.hook_in_network()
    assert "host_code" not in kinds(replace(slow, operators=replace(slow.operators, op_ms=0.9 * s.STEP_MS, step_ms=9 * s.STEP_MS)))


def test_recorded_operators_that_look_longer_than_the_step_hide_nothing():
    tiny = c.tiny_micro_batches()
    recorded = replace(tiny, operators=c.operators(per_step=3000.0, op_ms=2 * s.STEP_MS, step_ms=2.2 * s.STEP_MS))
    assert kinds(recorded)[0] == "small_microbatch"
    few = replace(tiny, operators=c.operators(per_step=300.0, op_ms=2 * s.STEP_MS, step_ms=2.2 * s.STEP_MS))
    assert kinds(few) == ["compute", "optimizer"]


def test_a_cost_without_its_phase_is_gone_and_what_stood_beside_it_leads():
    """Recomputing that was measured, in a backward that took no time, must not lead a program whose operators are tiny."""
    tiny, again = c.tiny_operators(), c.checkpointed_blocks().recompute
    summary = replace(tiny, recompute=again, phases=tiny.phases | {"Bwd": s.phase(0.0)})
    found = diagnose(summary).findings
    assert "recompute" not in {finding.kind for finding in found}
    assert found[0].kind == "launch_overhead"


def test_gradients_of_whole_lookup_tables():
    def told(part, **changes):
        made = replace(s.run(Fwd=0.1, Bwd=0.7, Opt=0.1), operators=c.operators(table_share=part), updates=c.updates(**changes))
        return {finding.phase: finding for finding in diagnose(made).findings if finding.kind == "optimizer"}.get("Bwd")

    lazy = {"optimizer": "SGD", "elements": 5_000_000}
    found = told(0.5, **lazy)
    assert found.share == pytest.approx(0.45) and found.knobs == ()
    assert told(0.05, **lazy) is None and told(None, **lazy) is None
    assert told(0.5, optimizer="Adam", elements=5_000_000) is None  # moves all rows
    assert told(0.5, optimizer="SGD", elements=1000) is None


def test_predictions_that_the_loss_ignores():
    place = Location("objective.py", 30, "objective")

    def run(share: float, ignored: float, padded: float | None = None) -> Summary:
        seen = (IgnoredTargets(place, share, ignored, 2.0, (768, 8000)),)
        return replace(s.run(Fwd=0.4, Bwd=0.5), ignored_targets=seen, padding_share=padded)

    found = first(run(0.5, 0.8))
    assert (found.kind, found.phase, found.location, found.knobs) == ("padding", "Fwd", place, ())
    assert found.share == pytest.approx(0.4)
    for nothing in (run(0.5, DEFAULT.padding - 0.01), run(DEFAULT.listed, 0.8), run(0.5, 0.4, padded=0.2)):
        assert "padding" not in kinds(nothing)
    beside = [each for each in diagnose(run(0.6, 0.95, padded=0.5)).findings if each.kind == "padding"]
    assert [each.knobs[-1:] for each in beside] == [("group_by_length",), ()]
    assert beside[1].share == pytest.approx(0.6 * 0.45)


@pytest.mark.parametrize("direct", [True, False])
def test_gradients_that_nobody_takes(direct):
    place, half = Location("objective.py", 22, "objective"), replace(s.run(Fwd=0.3, Bwd=0.6), in_vain=(InVain(None, False, 1.0, 0.01),))
    found = first(replace(half, in_vain=(InVain(place, direct, 1.0, 0.3), *half.in_vain)))
    assert (found.kind, found.phase, found.location, found.knobs) == ("recompute", "Bwd", place, ())
    assert found.share == pytest.approx(0.31)
    assert "recompute" not in kinds(half)


# --- frozen networks


def taught(share: float, phase: str = "Fwd") -> Summary:
    """A teacher whose answers take `share` of the time, to rows that come again."""
    return replace(
        s.run(Eval=0.4) if phase == "Eval" else s.healthy(), frozen_repeats=(FrozenRepeat(c.CHECKPOINT_LINE, phase, share, 1.0, 4000),)
    )


def test_a_frozen_network_that_answers_the_same_rows_again_is_repeated_work():
    found = first(taught(0.36))
    assert (found.kind, found.phase, found.location) == ("repeated_work", "Fwd", c.CHECKPOINT_LINE)
    assert found.share == pytest.approx(0.36)
    assert first(taught(0.04)).kind == "compute"


def test_in_evaluations_it_is_a_part_of_them():
    found = diagnose(taught(0.2, "Eval")).findings
    assert [each.kind for each in found] == ["evaluation", "repeated_work"]


def test_whole_batches_that_come_again_are_told_once():
    again = s.repeated(0.3, during="operators", location=c.CHECKPOINT_LINE)
    found = diagnose(replace(taught(0.36), repeated=(again,))).findings
    assert [each.kind for each in found].count("repeated_work") <= 1
