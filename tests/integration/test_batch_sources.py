"""Batches that no DataLoader makes are phase Data, wherever they come from."""

from __future__ import annotations

import pytest
from probed import median_ms, plain, probed

from trainflash.schema import PHASES

PROGRAM = "batch_sources.py"
FULL = pytest.mark.full
BATCH_MS = 5.9
DATA, OTHER = PHASES.index("Data"), PHASES.index("Other")


def run_of(tmp_path, style):
    """The style under the probe; its losses are those of a run without, to the bit."""
    run = probed(tmp_path, PROGRAM, style, capture="diagnose")
    assert run.returncode == 0 and run.rank.swallowed == {}, (run.output, run.rank.swallowed)
    assert run.output == plain(PROGRAM, style)
    return run.rank


FUNCTIONS = {
    "lists": "rows",
    "lists_as_they_are": "items",
    "in_one_decorator": "rows",
    "other_layout": "photographs",
    "one_buffer": "fill",
    "one_array": "fill_array",
    "another_network_first": "real",
    "between_the_forwards": "real",
}
QUICK = ("in_one_decorator", "lists_as_they_are")


@pytest.mark.parametrize("style", [pytest.param(name, marks=() if name in QUICK else FULL) for name in FUNCTIONS])
def test_a_function_that_makes_batches_is_data_whatever_it_returns(tmp_path, style):
    rank = run_of(tmp_path, style)
    assert rank.steps == 64
    assert [function.qualname for function in rank.data_functions] == [FUNCTIONS[style]]
    assert median_ms(rank)["Data"] > BATCH_MS


def mean_ms(rank, first=24):
    """Mean milliseconds a step of each phase, after the traced steps."""
    return {name: float(values[first:].mean()) / 1e6 for name, values in rank.phase_ns.items()}


def phases_at(rank, function, first=24):
    """Phases of the samples in one function of the program, after the traced steps."""
    samples = rank.samples
    chosen = (samples.step >= first) & (samples.place >= 0)
    return [
        phase
        for place, phase in zip(samples.place[chosen], samples.phase[chosen], strict=True)
        if samples.locations[place].function == function
    ]


@FULL
def test_a_rare_refill_inside_a_running_generator_is_data(tmp_path):
    rank = run_of(tmp_path, "refills")
    assert mean_ms(rank)["Data"] > 5
    phases = phases_at(rank, "slowly")
    assert phases.count(DATA) > 0.8 * len(phases) > 0


@pytest.mark.full
def test_what_a_running_generator_does_around_a_loader_is_data_and_the_loop_s_own_work_is_not(tmp_path):
    rank = run_of(tmp_path, "around_a_loader")
    made, own = phases_at(rank, "slowly"), phases_at(rank, "around_a_loader")
    assert mean_ms(rank)["Data"] > 5 and made.count(DATA) > 0.8 * len(made) > 0
    assert own.count(OTHER) > own.count(DATA)


@pytest.mark.full
def test_what_a_generator_gives_is_data_whatever_is_made_of_it(tmp_path):
    rank = run_of(tmp_path, "remade")
    assert [function.qualname for function in rank.data_functions] == ["samples"]
    assert mean_ms(rank)["Data"] > 5 and phases_at(rank, "slowly").count(DATA) > 0


HANDED = {  # the style, and the function that makes the batches somewhere else
    "thread_and_queue": "computed",
    "thread_of_lists": "computed",
    "method_around_a_queue": "computed",
    "loader_in_a_thread": "computed",
    "pool_of_processes": "computed",
    "futures": "computed",
}
QUICK_HANDED = ("thread_and_queue",)


@pytest.mark.parametrize("style", [pytest.param(name, marks=() if name in QUICK_HANDED else FULL) for name in HANDED])
def test_waiting_for_what_others_make_is_data_at_the_line_that_makes_it(tmp_path, style):
    rank = run_of(tmp_path, style)
    spent = mean_ms(rank)
    assert spent["Data"] > max(1, spent["Other"]), spent  # on busy cores training itself takes longer, and the wait is shorter
    known = rank.samples.place[(rank.samples.phase == DATA) & (rank.samples.step >= 24)]
    lines = [rank.samples.locations[place].function for place in known if place >= 0]
    assert lines.count(HANDED[style]) > 0.5 * len(lines), lines


@FULL
def test_the_loop_s_own_work_before_a_generator_around_a_queue_is_no_data(tmp_path):
    rank = run_of(tmp_path, "generator_around_a_queue")
    assert mean_ms(rank)["Data"] < 2 and mean_ms(rank)["Other"] > 5
    assert phases_at(rank, "slowly").count(DATA) == 0


@FULL
def test_waiting_for_anything_else_is_no_data(tmp_path):
    phases = median_ms(run_of(tmp_path, "another_queue"))
    assert phases["Data"] > BATCH_MS and phases["Other"] > 3.9, phases
