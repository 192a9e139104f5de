"""Stacks and recorded calls → cost sites: where time counts, what backward is divided into, the way down, operators, rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import traces as t
from stack_scenarios import ENGINE, samples, stack

from trainflash.report import sites as sites_in_words
from trainflash.schema import PHASES, Location, Operand, Peaks
from trainflash.stacks import Node, anchor, frame_at, kind_of, loop_lines, root
from trainflash.summary import steady_part, summarize
from trainflash.summary.floors import floor_s
from trainflash.summary.sites import cost_sites
from trainflash.summary.trends import trend
from trainflash.trace.calls import CallRow, CallTrace

MAIN = "own:train.py:40:main"
MODEL = f"{MAIN} torch:torch/nn/modules/module.py:9:Module._call_impl own:model.py:20:Net.forward"
STEPS = 40
PEAKS = Peaks(1, {"cache": 60e9, "memory": 10e9}, {"float32": 100e9, "float64": 30e9})


def sites(rows, calls=(), steps=STEPS, **more):
    """Sites of a run whose steps consist of these samples, a millisecond each."""
    length = sum(times for _, _, times in rows)
    rank = t.rank([length] * steps, {}, samples=samples(rows, steps), calls=tuple(calls), **more)
    return cost_sites(t.trace(rank), rank, steady_part(rank, 0), PEAKS).sites


def at(found, file: str, line: int):
    return next(site for site in found if (site.location.file, site.location.line) == (file, line))


def call(words: str, name: str, ns: int, backward_ns: int = 0, phase: str = "Fwd", **more) -> CallRow:
    return CallRow(stack(words), phase, name, 1, ns, backward_ns, **more)


# --- whose time it is


def test_time_counts_for_the_owners_deepest_line_and_the_way_below_it_is_named():
    line = f"{MAIN} lib:torchmetrics/metric.py:300:Metric.forward lib:torchmetrics/auroc.py:12:compute"
    found = at(sites([(line, "Fwd", 6), (MODEL, "Fwd", 4)]), "train.py", 40)
    assert found.share == pytest.approx(0.6)
    assert [place.function for place in found.path] == ["Metric.forward", "compute"]
    assert found.called_back == "metric"


def test_the_owner_s_functions_that_led_to_a_line_are_told_nearest_first():
    decode = "own:train.py:45:validate own:decoder.py:34:search own:decoder.py:30:search.<locals>.<listcomp> own:decoder.py:14:summed"
    rows = [(f"{MAIN} {decode}", "Eval", 3), ("own:decoder.py:50:main own:decoder.py:14:summed", "Eval", 1)]
    found = at(sites(rows), "decoder.py", 14)
    assert [f"{place.line} {place.function}" for place in found.callers] == [
        "30 search.<locals>.<listcomp>",
        "45 validate",
        "40 main",
    ]
    assert sites_in_words.callers(found) == "called at decoder.py:30 in search.<listcomp>, train.py:45 in validate"


def test_callers_that_lead_to_less_than_half_of_a_line_are_not_told():
    rows = [(f"own:train.py:{line}:one{line} own:model.py:14:apply", "Fwd", 2) for line in (5, 6, 7)]
    assert at(sites(rows), "model.py", 14).callers == ()


def test_the_script_itself_is_no_caller_worth_telling():
    assert sites_in_words.callers(at(sites([("own:train.py:9:<module> own:model.py:14:apply", "Fwd", 2)]), "model.py", 14)) == ""


def test_the_way_down_ends_where_the_time_no_longer_goes_one_way():
    rows = [(f"{MAIN} lib:a/b.py:1:outer lib:a/b.py:{line}:inner{line}", "Data", 2) for line in (2, 3, 4)]
    found = at(sites(rows), "train.py", 40)
    assert [place.function for place in found.path] == ["outer"]


def test_a_line_that_runs_a_librarys_loop_is_divided_among_the_librarys_lines():
    fit = "own:train.py:9:main lib:trainer/fit.py:5:fit"
    rows = [
        (f"{fit} lib:trainer/data.py:7:fetch lib:numpy/core.py:1:stack", "Data", 3),
        (f"{fit} lib:models/bert.py:70:BertLayer.forward torch:torch/nn/functional.py:9:linear", "Fwd", 5),
        (f"{fit} torch:torch/optim/adam.py:3:Adam.step", "Opt", 2),
    ]
    found = sites(rows)
    assert {(site.location.file, site.location.line): round(site.share, 2) for site in found} == {
        ("models/bert.py", 70): 0.5,
        ("trainer/data.py", 7): 0.3,  # an arithmetic library is never the place
        ("trainer/fit.py", 5): 0.2,
    }
    assert {site.under for site in found} == {Location("train.py", 9, "main")}


CALLS = "torch:torch/nn/modules/module.py:9:Module._call_impl"


def test_a_line_that_calls_a_librarys_whole_network_is_divided_among_its_lines():
    line = f"{MAIN} {CALLS} lib:transformers/gpt2.py:7:GPT2.forward"
    rows = [
        (f"{line} lib:transformers/gpt2.py:90:attend", "Fwd", 4),
        (f"{line} lib:transformers/gpt2.py:95:mlp", "Fwd", 3),
        (MAIN, "Opt", 3),
    ]
    found = sites(rows)
    assert [(site.location.file, site.location.line) for site in found[:2]] == [("transformers/gpt2.py", 90), ("transformers/gpt2.py", 95)]
    assert found[0].under == Location("train.py", 40, "main")
    metric = f"{MAIN} {CALLS} lib:torchmetrics/metric.py:300:Metric.forward lib:torchmetrics/auroc.py:12:compute"
    assert at(sites([(metric, "Fwd", 7), (MAIN, "Opt", 3)]), "train.py", 40).called_back == "metric"
    small = [*rows[:2], (MAIN, "Opt", 30)]
    assert at(sites(small), "train.py", 40).phase == "Opt" and not any(site.under for site in sites(small))


def test_a_loader_whose_transforms_are_modules_is_no_loop():
    transforms = f"{MAIN} lib:monai/transforms.py:5:Affine.forward"
    assert loop_lines([(stack(transforms), "Data", 40.0), (stack(transforms), "Fwd", 2.0)]) == frozenset()
    assert loop_lines([(stack(transforms), "Data", 40.0), (stack(transforms), "Fwd", 40.0)])
    costly = [(stack(transforms), "Other", 990.0), (stack(transforms), "Fwd", 5.0), (stack(transforms), "Opt", 5.0)]
    assert loop_lines(costly)  # whatever else a trainer does leaves little for updates, but all of them are there
    assert loop_lines([*costly, (stack(MAIN), "Opt", 20.0), (stack(MAIN), "Fwd", 20.0)]) == frozenset()


def test_a_line_of_one_phase_stays_the_owners_however_much_lies_below_it():
    call_of_library = f"{MAIN} lib:models/bert.py:70:BertLayer.forward"
    assert loop_lines([(stack(call_of_library), "Fwd", 5.0), (stack(MAIN), "Opt", 5.0)]) == frozenset()
    assert anchor(stack(call_of_library), frozenset()) == Location("train.py", 40, "main")


def test_whose_code_a_frame_is_follows_from_its_file():
    assert frame_at(Location("/env/lib/python3.11/site-packages/torch/nn/x.py", 1, "f"), False).kind == "torch"
    library = frame_at(Location("/env/lib/python3.11/site-packages/monai/t.py", 1, "f"), False)
    assert (library.kind, library.location.file, library.package) == ("library", "monai/t.py", "monai")
    assert frame_at(Location("/usr/lib/python3.11/json/decoder.py", 1, "f"), False).kind == "python"
    assert frame_at(Location("<string>", 1, "f"), False).kind == "python"
    assert frame_at(Location("train.py", 1, "f"), True).kind == "own"


# --- backward


def test_backward_is_divided_among_the_lines_of_its_forward():
    other = MODEL.replace("model.py:20", "model.py:21")
    rows = [(MODEL, "Fwd", 1), (other, "Fwd", 1), (f"{MAIN} {ENGINE}", "Bwd", 8)]
    recorded = CallTrace(12, 10**7, (call(MODEL, "norm", 10**6, 3 * 10**6), call(other, "linear", 10**6, 10**6)))
    found = sites(rows, [recorded])
    first, second = at(found, "model.py", 20), at(found, "model.py", 21)
    assert (first.forward, first.backward) == (pytest.approx(0.1), pytest.approx(0.6))
    assert second.backward == pytest.approx(0.2)
    assert sum(site.share for site in found) == pytest.approx(1.0)  # each moment once
    assert first.function_share == pytest.approx(1.0)


def test_without_recorded_calls_backward_stays_at_its_call():
    found = at(sites([(MODEL, "Fwd", 2), (f"{MAIN} {ENGINE}", "Bwd", 8)]), "train.py", 40)
    assert found.backward == pytest.approx(0.8)


def test_python_that_the_engine_calls_is_a_hook_and_no_part_of_any_forward():
    hook = f"{MAIN} {ENGINE} own:watch.py:24:Watcher.record"
    recorded = CallTrace(12, 10**7, (call(MODEL, "gru", 10**6, 10**6),), beside_ns=9 * 10**6)
    found = sites([(MODEL, "Fwd", 2), (hook, "Bwd", 6), (f"{MAIN} {ENGINE}", "Bwd", 2)], [recorded])
    assert at(found, "watch.py", 24).called_back == "hook"
    assert at(found, "watch.py", 24).share == pytest.approx(0.6)


def test_what_the_engine_does_beside_nodes_without_any_python_is_told_apart():
    recorded = CallTrace(12, 10**7, (call(MODEL, "linear", 10**6, 2 * 10**6),), beside_ns=6 * 10**6)
    found = sites([(MODEL, "Fwd", 2), (f"{MAIN} {ENGINE}", "Bwd", 8)], [recorded])
    assert at(found, "train.py", 40).called_back == "engine"
    assert at(found, "train.py", 40).share == pytest.approx(0.6)
    usual = replace(recorded, nodes=600)  # so many small ones
    assert at(sites([(MODEL, "Fwd", 2), (f"{MAIN} {ENGINE}", "Bwd", 8)], [usual]), "model.py", 20).share == pytest.approx(1.0)


def test_a_recorded_step_in_which_another_process_took_the_core_tells_of_no_hook():
    quiet = CallTrace(12, 10**7, (call(MODEL, "linear", 10**6, 2 * 10**6),))
    disturbed = replace(quiet, step=20, beside_ns=6 * 10**6)
    rows = [(MODEL, "Fwd", 2), (f"{MAIN} {ENGINE}", "Bwd", 8)]
    for recorded in ([quiet, disturbed], [quiet, disturbed, replace(quiet, step=30)]):
        assert at(sites(rows, recorded), "model.py", 20).share == pytest.approx(1.0)
    grows = [quiet, replace(disturbed, step=16), disturbed]
    assert at(sites(rows, grows), "train.py", 40).called_back == "engine"


@pytest.mark.parametrize(
    ("words", "backward", "kind"),
    [
        (f"{MAIN} torch:torch/nn/modules/module.py:8:inner|hook_result_=_hook(self,_args,_result) own:watch.py:2:note", False, "hook"),
        (f"{MAIN} torch:torch/nn/modules/module.py:8:inner|return_forward_call(*args) own:model.py:2:wrapped", False, ""),
        (f"{MAIN} {ENGINE} torch:torch/autograd/function.py:3:apply own:ops.py:9:Mine.backward", True, ""),
        (f"{MAIN} lib:wandb/run.py:4:log", False, "tracker"),
        ("own:evaluate/main.py:4:score", False, ""),  # a folder of the owner's
    ],
)
def test_what_is_called_back_is_known_by_who_calls_it(words, backward, kind):
    assert kind_of(stack(words), True, backward) == kind


# --- operators and floors


def asked(name: str, *shapes: tuple[int, ...], backward: bool = False, made: tuple[int, ...] | None = None, **more) -> CallRow:
    given = tuple(Operand(shape, "float32", requires_grad=backward, **more) for shape in shapes)
    return CallRow((), "Fwd", name, 1, 10**6, 10**6 if backward else 0, given, (Operand(made or shapes[0], "float32"),))


def floor_ms(row: CallRow) -> float | None:
    seconds = floor_s(row, PEAKS)
    return None if seconds is None else 1e3 * seconds


def test_a_product_needs_its_flops_and_what_reads_memory_its_bytes():
    product = asked("linear", (512, 1024), (2048, 1024), made=(512, 2048))
    assert floor_ms(product) == pytest.approx(1e3 * 2 * 512 * 1024 * 2048 / 100e9)
    large = asked("mul", (4096, 4096))
    assert floor_ms(large) == pytest.approx(1e3 * 2 * 4 * 4096**2 / 10e9)
    small = asked("mul", (64, 64))
    assert floor_ms(small) == pytest.approx(1e3 * 2 * 4 * 64**2 / 60e9)


def test_backward_multiplies_once_for_each_operand_that_needs_a_gradient():
    both = floor_ms(asked("mm", (256, 256), (256, 256), backward=True))
    assert both == pytest.approx(3 * floor_ms(asked("mm", (256, 256), (256, 256))))


def test_a_gather_reads_as_many_rows_as_it_makes():
    table = asked("embedding", (1000,), (1_000_000, 64), made=(1000, 64))
    assert floor_ms(table) < 1e3 * 4 * 1_000_000 * 64 / 10e9 / 10


@pytest.mark.parametrize("name", ["multinomial", "sort", "gru", "view", "dropout"])
def test_work_that_does_not_follow_from_shapes_has_no_floor(name):
    assert floor_ms(asked(name, (4096, 4096))) is None
    assert floor_ms(asked("mul", (4096, 4096), device="cuda")) is None


def test_operators_take_their_part_of_the_time_that_was_sampled():
    recorded = CallTrace(12, 10**7, (call(MODEL, "norm", 3 * 10**6), call(MODEL, "mul", 10**6), call(MAIN, "add", 4 * 10**6)))
    found = at(sites([(MODEL, "Fwd", 8), (MAIN, "Other", 2)], [recorded]), "model.py", 20)
    assert [each.name for each in found.operators] == ["norm", "mul"]
    assert found.operators[0].share == pytest.approx(0.3)  # 3 of 8 ms of all forward's calls, of which there is 0.8
    assert all(each.share <= found.share for each in found.operators)


@pytest.mark.parametrize(("ms", "known"), [(40.0, True), (4.0, False)])
def test_a_floor_that_the_call_itself_refutes_is_none(ms, known):
    """512 × 1024 × 2048 at 100 GFLOP/s take 21 ms at least: a machine that does it in 4 is faster than was measured."""
    given = (Operand((512, 1024), "float32", "contiguous"), Operand((1024, 2048), "float32", "contiguous"))
    product = call(MODEL, "mm", int(ms * 1e6), given=given, made=(Operand((512, 2048), "float32", "contiguous"),))
    (operator,) = at(sites([(MODEL, "Fwd", 8), (MAIN, "Other", 2)], [CallTrace(12, 10**8, (product,))]), "model.py", 20).operators
    assert (operator.floor_ms is not None) is known


# --- change over the run


def test_a_site_that_grows_is_told_with_its_first_and_last_third():
    rows = [(MODEL, "Fwd", 1)]
    steps = 60
    grown = samples(rows, steps)
    weight = t.ns(np.linspace(1.0, 9.0, steps))
    rank = t.rank(np.linspace(2.0, 10.0, steps), {"Fwd": 0.8}, samples=replace(grown, weight_ns=weight))
    part = steady_part(rank, 0)
    found = cost_sites(t.trace(rank), rank, part).sites
    told = trend(rank, part, found)
    assert told.location == Location("model.py", 20, "Net.forward")
    assert told.late_ms > 2 * told.early_ms
    assert told.site_late_ms > 2 * told.site_early_ms
    assert list(told.parts_ms) == sorted(told.parts_ms)
    assert trend(rank, steady_part(rank, 50), found) is None  # too few steps


# --- which steps count


def shares(rank, warmup: int | None = None) -> dict[str, float]:
    found = summarize(t.trace(rank), run="run", project="/p", warmup=warmup).phases
    assert sum(stat.share for stat in found.values()) == pytest.approx(1.0)
    return {name: stat.share for name, stat in found.items()}


def evaluated(*at: int, steps: int = 180):
    evaluation = [500.0 if step in at else 0.0 for step in range(steps)]
    return t.rank([10.0 + extra for extra in evaluation], {"Eval": evaluation})


def test_what_comes_once_in_many_steps_is_scaled_by_how_often_it_comes():
    true = 500 / (100 * 10 + 500)  # every hundredth step
    assert shares(evaluated(0, 100), 50)["Eval"] == pytest.approx(true, abs=0.01)  # one in 130 steps
    assert shares(evaluated(30, 130), 20)["Eval"] == pytest.approx(true, abs=0.01)  # two in 160
    assert shares(evaluated(90), 20)["Eval"] == pytest.approx(500 / 2100, abs=0.01)  # nobody knows when it comes again
    assert shares(evaluated(20, 30, 130), 10)["Eval"] == pytest.approx(1500 / 3200, abs=0.01)  # at no regular times


def test_samples_of_evaluations_count_as_their_phase_does():
    evaluation = [500.0 if step in (0, 100) else 0.0 for step in range(180)]
    rank = t.rank([10.0 + extra for extra in evaluation], {"Eval": evaluation})
    rows = samples([(MODEL, "Fwd", 1)], 180)
    judged = replace(
        rows, phase=np.where(rows.step == 100, PHASES.index("Eval"), rows.phase), weight_ns=t.ns(np.where(rows.step == 100, 510, 10))
    )
    part = steady_part(rank, 50)
    found = {
        name: int(part.counted(judged).weight_ns[(judged.phase == PHASES.index(name)) & (judged.step >= 50)].sum())
        for name in ("Eval", "Fwd")
    }
    assert found["Eval"] / sum(found.values()) == pytest.approx(shares(rank, 50)["Eval"], abs=0.01)


def test_long_steps_that_the_probe_did_not_slow_count():
    rank = t.rank([1000.0] * 10 + [1500.0] + [1000.0] * 3, {"Fwd": 0.5}, left_out=(6, 7, 10))
    assert len(steady_part(rank, 2).kept) == 11  # of 12, less the one that was slowed
    many = t.rank([10.0] * 60, {"Fwd": 0.5}, left_out=(20, 21))
    assert len(steady_part(many, 10).kept) == 48


def test_a_call_tree_weighs_each_moment_once_and_draws_what_can_be_seen():
    tree = root("Fwd")
    tree.add(stack(MODEL), 900)
    tree.add(stack(MAIN), 97)
    tree.add(stack("own:rare.py:1:f"), 3)
    drawn = tree.drawn(1000)
    assert drawn.share == pytest.approx(1.0)
    assert [child.location.file for child in drawn.children] == ["train.py"]
    assert sum(child.share for child in drawn.children[0].children) == pytest.approx(0.9)
    assert isinstance(tree, Node)
