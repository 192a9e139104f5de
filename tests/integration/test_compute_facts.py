"""Real programs under the probe: what it says of their computing, and that it changes none of it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from probed import PROBE, PROGRAMS, environment, line_of, plain, probed, seen

from trainflash.diagnosis.compute_rules import WEIGHTS_USED
from trainflash.schema import Location
from trainflash.summary import summarize

LOOP = "facts_loop.py"
ATTENTION = {
    "hand": ("hand_written", "torch.softmax(scores", "", (8, 4, 24, 24)),
    "closure": ("hand_written", "torch.softmax(scores", "", (8, 4, 24, 24)),
    "einsum": ("hand_written", "scores.softmax(-1)", "", (8, 4, 24, 24)),
    "exponentials": ("hand_written", "keepdim=True)).exp()", "", (8, 4, 24, 24)),
    "math": ("math_fallback", "dropout_p=0.1", "dropout on a CPU", (8, 4, 24, 24)),
    "weights": ("math_fallback", "self.attention(x, x, x)", "need_weights=True", (32, 24, 24)),
}


FULL = pytest.mark.full


@pytest.mark.parametrize(
    "plant", ["hand", *(pytest.param(plant, marks=FULL) for plant in ("closure", "exponentials", "einsum", "math", "weights"))]
)
def test_attention_outside_a_fused_kernel(plant, tmp_path):
    found, run = seen(tmp_path, LOOP, f"plant={plant}")
    kind, text, reason, shape = ATTENTION[plant]
    (attention,) = found.attention
    assert (attention.kind, attention.reason, attention.shape, attention.per_step) == (kind, reason, shape, 1.0)
    assert (attention.location.file, attention.location.line) == (LOOP, line_of(LOOP, text))
    assert 0.0 < attention.share < 1.0
    first, second = (census.step for census in run.rank.computing.censuses)
    assert 6 <= first <= 8 and 24 <= second <= 26  # a step in which something else is traced is passed over
    assert {first, second} <= set(run.rank.left_out)
    assert sum(stat.share for stat in found.phases.values()) == pytest.approx(1.0)
    losses = [line for line in run.output.splitlines() if line[0].isdigit()]
    assert losses == plain(LOOP, f"plant={plant}").splitlines()  # to the bit, with dropout
    assert run.output.splitlines() == losses or plant == "weights"  # nothing of ours is printed


@FULL
def test_weights_that_are_used_elsewhere_are_told(tmp_path):
    found, run = seen(tmp_path, LOOP, "plant=pointer")
    (attention,) = found.attention
    assert (attention.kind, attention.reason, attention.per_step) == ("hand_written", WEIGHTS_USED, 1.0)
    assert attention.location.line == line_of(LOOP, "points = torch.softmax")
    assert run.output == plain(LOOP, "plant=pointer")


@pytest.mark.parametrize("plant", ["none", *(pytest.param(plant, marks=FULL) for plant in ("kernel", "fused", "experts"))])
def test_no_attention_is_made_up(plant, tmp_path):
    found, _ = seen(tmp_path, LOOP, f"plant={plant}")
    assert found.attention == ()
    assert found.operators.steps == 2
    assert found.operators.per_step > found.operators.optimizer_per_step > 10
    assert found.operators.op_ms < found.operators.step_ms


@FULL
def test_attention_of_a_network_of_functions_alone(tmp_path):
    found, run = seen(tmp_path, "functions_alone.py", "attend")
    (attention,) = found.attention
    assert (attention.kind, attention.shape, attention.per_step) == ("math_fallback", (4, 64, 64), 1.0)
    assert attention.location.line == line_of("functions_alone.py", "# of three dimensions")
    assert plain("functions_alone.py", "attend") == run.output


@FULL
@pytest.mark.parametrize("plant", ["walk", "walk twice"])
def test_operators_that_make_a_batch_are_no_computing(plant, tmp_path):
    found, _ = seen(tmp_path, LOOP, f"plant={plant}")
    bare, _ = seen(tmp_path / "bare", LOOP, f"plant={'accumulate' if plant == 'walk twice' else 'none'}")
    assert found.operators.per_step == pytest.approx(bare.operators.per_step, abs=3)


@FULL
def test_operators_that_make_a_batch_behind_acting_are_no_computing(tmp_path):
    found, _ = seen(tmp_path, "loop_styles.py", "value_learning_by_hand")
    bare, _ = seen(tmp_path / "bare", "loop_styles.py", "value_learning")
    written = 300  # values, each by several operators; some of them lie where two clocks may differ
    assert found.operators.per_step < bare.operators.per_step + written


@FULL
def test_modules_that_a_library_wraps_to_recompute_them(tmp_path):
    found, run = seen(tmp_path, LOOP, "plant=wrapped")
    (again,) = found.recompute
    place = Location(LOOP, line_of(LOOP, "wrapping.apply_activation_checkpointing("), "slim")
    assert (again.location, again.per_step) == (place, pytest.approx(3.0, rel=0.02))
    assert plain(LOOP, "plant=wrapped") == run.output


@pytest.mark.parametrize("plant", ["checkpoint", pytest.param("reentrant", marks=FULL)])
def test_forward_work_done_again(plant, tmp_path):
    found, run = seen(tmp_path, LOOP, f"plant={plant}")
    (again,) = found.recompute
    assert (again.location.line, again.per_step) == (line_of(LOOP, "checkpoint(block"), pytest.approx(3.0, rel=0.02))
    assert 0.0 < again.share < found.phases["Bwd"].share
    assert run.rank.computing.sizes.samples == 8.0, "a batch once, however often its parts run again"
    assert plain(LOOP, f"plant={plant}") == run.output


def test_modules_that_get_what_they_had_in_the_same_step(tmp_path):
    found, run = seen(tmp_path, LOOP, "plant=again")
    (again,) = found.forward_repeats
    assert (again.location.line, again.per_step) == (line_of(LOOP, "head(self.encoder(x))"), 2.0)
    assert 0.0 < again.share < found.phases["Fwd"].share + found.phases["Bwd"].share  # which part exactly: the unit tests
    assert plain(LOOP, "plant=again") == run.output


@FULL
def test_products_of_few_rows_are_told_by_their_rows(tmp_path):
    found = {each.rows: each.share for each in seen(tmp_path, LOOP, "plant=wide")[0].operators.thin}
    assert found[2] > 0.2, found


@FULL
def test_a_frozen_network_that_is_asked_again_behind_the_update(tmp_path):
    found, run = seen(tmp_path, LOOP, "plant=taught twice")
    (again,) = found.forward_repeats
    assert (again.location.line, again.per_step) == (line_of(LOOP, "# as often as in the training"), 1.0)
    assert 0.0 < again.share < found.phases["Fwd"].share
    assert plain(LOOP, "plant=taught twice") == run.output


@FULL
def test_a_forward_without_gradients_before_the_same_one_with_them(tmp_path):
    found, run = seen(tmp_path, LOOP, "plant=encoded before")
    (again,) = found.forward_repeats
    assert again.location.line == line_of(LOOP, "# for nothing")
    assert "Data" not in found.phases or found.phases["Data"].share < 0.05  # it makes no data: the same input is trained on
    assert 0.0 < again.share < found.phases["Fwd"].share
    assert plain(LOOP, "plant=encoded before") == run.output


@FULL
@pytest.mark.parametrize("plant", ["again with noise", *(pytest.param(plant, marks=FULL) for plant in ("accumulate", "taught the same"))])
def test_another_result_or_another_pass_is_no_repetition(plant, tmp_path):
    assert seen(tmp_path, LOOP, f"plant={plant}")[0].forward_repeats == ()


@FULL
def test_operators_of_a_closure_are_no_update(tmp_path):
    closed = seen(tmp_path / "closed", LOOP, "plant=closure")[0].operators
    plain_loop = seen(tmp_path / "plain", LOOP, "plant=hand")[0].operators
    assert closed.optimizer_per_step == pytest.approx(plain_loop.optimizer_per_step, abs=4)
    assert closed.per_step == pytest.approx(plain_loop.per_step, rel=0.05)


@FULL
def test_collections_that_the_program_asks_for(tmp_path):
    found, _ = seen(tmp_path, LOOP, "plant=gc")
    assert found.collections.location == Location(LOOP, line_of(LOOP, "gc.collect()"), "clean_up")
    assert found.collections.called == pytest.approx(found.steps, abs=3)
    assert found.collections.full >= found.collections.called
    assert found.collections.share > 0.3


def test_how_parameters_are_updated(tmp_path):
    updates = seen(tmp_path, LOOP, "plant=accumulate")[0].updates
    assert (updates.optimizer, updates.location.line) == ("AdamW", line_of(LOOP, "AdamW("))
    assert (updates.backwards_per_step, updates.micro_batch, updates.zero_to_none, updates.optimizers) == (2.0, 8, True, 1)
    assert (updates.fused, updates.foreach, updates.tensors, updates.grad_scaler) == (False, False, 4, False)
    assert updates.package == "torch"
    assert updates.graded == updates.elements and (updates.unheld, updates.first_unheld) == (0, None)


@FULL
def test_gradients_that_no_optimizer_takes(tmp_path):
    found, _ = seen(tmp_path, LOOP, "plant=head alone")
    body, head = 32 * 32 + 32, 32 * 5 + 5
    assert (found.updates.elements, found.updates.graded, found.updates.unheld) == (head, body + head, body)
    assert found.updates.first_unheld == "0.0.weight"


@FULL
def test_gradients_that_are_filled_with_zeros(tmp_path):
    assert seen(tmp_path, LOOP, "plant=zeros")[0].updates.zero_to_none is False


@FULL
def test_number_formats(tmp_path):
    found, run = seen(tmp_path, LOOP, "plant=autocast")
    assert (found.numerics.parameter_dtype, found.numerics.autocast, found.numerics.compiled) == ("float32", "bfloat16", False)
    assert (found.numerics.tf32_matmul, found.numerics.capability) == (None, None)  # no CUDA in use
    assert found.memory.host_peak_bytes > 50 << 20
    assert found.memory.host_limit_bytes > found.memory.host_peak_bytes
    assert found.memory.device_peak_bytes is None
    assert plain(LOOP, "plant=autocast") == run.output
    assert found.numerics.chosen_at is None
    assert (found.operators.double_share, found.operators.double_at) == (0.0, None)


@pytest.mark.parametrize(
    ("plant", "text"),
    [pytest.param("doubled", "model.to(", marks=FULL), pytest.param("double by default", "set_default_dtype(", marks=FULL)],
)
def test_who_chose_the_number_format(tmp_path, plant, text):
    found, run = seen(tmp_path, LOOP, f"plant={plant}")
    assert found.numerics.parameter_dtype == "float64" and found.operators.double_share > 0.5
    assert found.numerics.chosen_at == Location(LOOP, line_of(LOOP, text), "main")
    assert plain(LOOP, f"plant={plant}") == run.output


@FULL
@pytest.mark.parametrize("plant", ["new shapes", *(pytest.param(plant, marks=FULL) for plant in ("one shape", "counted"))])
def test_what_new_shapes_cost_convolutions(tmp_path, plant):
    found, run = seen(tmp_path, LOOP, f"plant={plant}")
    most = {"new shapes": 2.0, "one shape": 0.6, "counted": 0.0}[plant]  # under a mode of the program's own nothing is run again
    assert (1.4 if plant == "new shapes" else 0.0) <= (found.operators.set_up or 0.0) <= most, found.operators
    losses = [line for line in run.output.splitlines() if line[0].isdigit()]  # and, counted, what a mode of the program's own saw
    assert losses == plain(LOOP, f"plant={plant}").splitlines()  # to the bit, though each convolution of two steps ran once more


@FULL
@pytest.mark.parametrize(
    ("plant", "text", "least"), [("double distances", ".to(torch.float64)", 0.3), ("double constant", "made * DISTANT", 0.01)]
)
def test_where_a_step_goes_over_to_float64(tmp_path, plant, text, least):
    found, run = seen(tmp_path, LOOP, f"plant={plant}")
    assert least < found.operators.double_share < 1.0 and found.numerics.parameter_dtype == "float32"
    assert found.operators.double_at == Location(LOOP, line_of(LOOP, text), "distance")
    losses = [line for line in run.output.splitlines() if line[0].isdigit()]
    assert losses == plain(LOOP, f"plant={plant}").splitlines()  # to the bit, though entry points are wrapped for a step


@FULL
def test_emptying_the_cache_is_counted_everywhere(tmp_path):
    found, _ = seen(tmp_path, LOOP, "plant=empty_cache")
    assert found.memory.empty_cache_calls == pytest.approx(found.steps, abs=3)
    assert found.memory.empty_cache_at.line == line_of(LOOP, "empty_cache()")
    assert found.sync_points == ()


@pytest.mark.parametrize(("plant", "censuses"), [pytest.param("profiled", 1, marks=FULL), ("profiled_inside", 0)])
def test_a_program_that_profiles_itself_is_left_alone(plant, censuses, tmp_path):
    found, run = seen(tmp_path, LOOP, f"plant={plant}")
    assert len(run.rank.computing.censuses) == censuses
    assert 6 in run.rank.left_out
    assert found.settings == ()


@FULL
def test_a_census_of_updates_inside_backward_ends_with_its_step(tmp_path):
    program = "updates_in_backward.py"
    found, run = seen(tmp_path, program)
    assert run.output == plain(program)  # with the recorder off again
    assert found.settings == ()
    assert found.operators is not None and found.operators.per_step > 10


def test_a_killed_program_has_told_most_of_it(tmp_path):
    run = probed(tmp_path / "run", LOOP, "plant=killed", capture="diagnose")
    assert run.returncode == -9
    found = summarize(run.trace, run="run", project=str(PROGRAMS))
    assert found.operators is not None and found.numerics is not None and found.memory is not None


def test_a_timed_run_carries_none_of_it(tmp_path):
    run = probed(tmp_path / "run", LOOP, "plant=hand", capture="timing")
    assert run.rank.left_out == ()
    found = summarize(run.trace, run="run", project=str(PROGRAMS))
    assert (found.operators, found.memory, found.collections, found.numerics, found.attention) == (None, None, None, None, ())


COMPILED = "facts_compile.py"


@pytest.mark.parametrize("plant", ["limit", *(pytest.param(plant, marks=FULL) for plant in ("none", "shapes", "breaks", "checkpoint"))])
def test_compilation_as_torch_counts_it(plant, tmp_path):
    found, run = seen(tmp_path, COMPILED, f"plant={plant}")
    done = found.compilation
    breaks, graphs = (int(re.search(rf"\b{name} (\d+)", run.output).group(1)) for name in ("breaks", "graphs"))
    unprobed = plain(COMPILED, f"plant={plant}").splitlines()
    assert [line for line in run.output.splitlines() if re.match(r"\d|breaks", line)] == unprobed  # losses, breaks and graphs
    assert (done.graph_breaks, found.numerics.compiled) == (breaks, True)
    assert done.frames == graphs
    assert done.limit_hit == (plant == "limit")
    assert done.by_shape == (plant in ("shapes", "limit"))
    if plant == "shapes":
        assert done.steady >= 1 and done.share > 0.1
        assert (done.location.file, done.location.line) == (COMPILED, line_of(COMPILED, "torch.compile(model"))
    if plant in ("none", "breaks"):
        assert (done.steady, done.share, done.reasons) == (0, 0.0, ())


SYNCS = "facts_sync.py"


@pytest.mark.parametrize("compiled", [pytest.param("0", marks=FULL), "1"])
def test_synchronisations_by_line(compiled, tmp_path):
    found, run = seen(tmp_path, SYNCS, f"compiled={compiled}")
    points = {(point.location.line, point.call): point for point in found.sync_points}
    often = points[line_of(SYNCS, "loss.item()"), "item"]
    assert often.count == pytest.approx(3 * found.steps, abs=6)
    assert (often.phase, often.on_device) == ("Other", False)
    assert (line_of(SYNCS, "if loss > 1e9"), "bool") in points
    assert points[line_of(SYNCS, "if float(hidden"), "item"].phase == "Fwd" or compiled == "1"
    unprobed = plain(SYNCS, f"compiled={compiled}").splitlines()
    assert [line for line in run.output.splitlines() if re.match(r"\d|subclass", line)][-41:] == unprobed[-41:]


def test_without_a_device_nothing_is_wrapped(tmp_path):
    check = "import torch; assert 'item' not in vars(torch.Tensor) and not hasattr(torch.Tensor.item, '__wrapped__')"
    env = environment(PYTHONPATH=str(PROBE), TRAINFLASH_RUN=str(tmp_path), TRAINFLASH_OWN=str(tmp_path), TRAINFLASH_CAPTURE="diagnose")
    subprocess.run([sys.executable, "-c", check], env=env, check=True, timeout=120)


SETTINGS = "facts_settings.py"


@pytest.mark.parametrize(
    ("on", "name", "line"),
    [
        pytest.param("tracemalloc", "tracemalloc", "tracemalloc.start()", marks=FULL),
        pytest.param("cprofile", "python_profiler", "cProfile.Profile().enable()", marks=FULL),
        pytest.param("settrace", "python_tracing", None, marks=FULL),
        ("logging", "verbose_logging", "level=logging.DEBUG"),
        pytest.param("deterministic", "fill_uninitialized_memory", "use_deterministic_algorithms(True)", marks=FULL),
    ],
)
def test_a_debug_setting_left_on(on, name, line, tmp_path):
    settings = {setting.name: setting for setting in seen(tmp_path, SETTINGS, f"on={on}")[0].settings}
    assert name in settings
    assert settings[name].location is None if line is None else settings[name].location.line == line_of(SETTINGS, line)


@FULL
@pytest.mark.parametrize("on", ["nothing", *(pytest.param(on, marks=FULL) for on in ("quiet_logging", "short_cprofile"))])
def test_settings_that_cost_nothing_are_not_told(on, tmp_path):
    found, _ = seen(tmp_path, SETTINGS, f"on={on}", TORCH_LOGS="recompiles", TORCH_SHOW_CPP_STACKTRACES="0")
    assert found.settings == ()


@FULL
def test_debug_settings_of_the_environment(tmp_path):
    found, _ = seen(tmp_path, SETTINGS, "steps=5", PYTHONMALLOC="debug", PYTHONDEVMODE="1")
    assert {setting.name for setting in found.settings} == {"dev_mode", "malloc_debug"}


@pytest.mark.full
def test_what_a_trainer_was_told_to_leave_on_is_found_where_it_was_told(tmp_path):
    pytest.importorskip("transformers")
    run = probed(tmp_path / "run", "hf_switches.py", str(tmp_path / "out"), capture="diagnose")
    assert run.returncode == 0 and run.rank.steps == 16 and run.rank.swallowed == {}, run.output
    told = line_of("hf_switches.py", "TrainingArguments(**")
    assert {setting.name: setting.location.line for setting in run.rank.settings}["underflow_overflow"] == told
    (again,) = summarize(run.trace, run="r", project="p").recompute
    assert again.location.line == told and again.per_step == pytest.approx(2.0, rel=0.02)
