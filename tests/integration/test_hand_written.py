"""Loops in which the owner wrote what torch has parts for: their time lies in the phase where timers placed by hand would put it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from probed import PROGRAMS, median_ms, plain, probed

from trainflash.diagnosis import diagnose
from trainflash.schema import PHASES
from trainflash.summary import summarize

PROGRAM = "hand_written.py"
FULL = pytest.mark.full


def run_of(tmp_path, style, same=False):
    """The style under the probe; with `same`, its losses are those of a run without, to the bit."""
    run = probed(tmp_path, PROGRAM, style, capture="diagnose", MALLOC_MMAP_THRESHOLD_="65536")  # what is freed is gone at once
    assert run.returncode == 0 and run.rank.swallowed == {}, run.output
    assert not same or run.output == plain(PROGRAM, style)
    return run


UPDATES = {
    "own_optimizer": "Descent.step",
    "own_optimizer_of_data": "Descent.step",
    "own_optimizer_foreach": "Descent.step",
    "own_optimizer_swapped": "Descent.step",
    "functional": "descend",
    "without_modules": "without_modules.<locals>.update",
}
QUICK = ("functional",)


@pytest.mark.parametrize("style", [pytest.param(name, marks=() if name in QUICK else FULL) for name in UPDATES])
def test_an_update_function_of_the_owner_s_is_opt(tmp_path, style):
    rank = run_of(tmp_path, style, same=True).rank
    assert rank.steps == 48
    phases = median_ms(rank)
    assert phases["Opt"] > 3.9 and phases["Other"] < 0.5 * phases["Opt"], phases
    assert rank.computing.updates.optimizer == UPDATES[style]
    assert rank.computing.updates.location.file == PROGRAM


@pytest.mark.full
def test_the_function_of_a_functional_gradient_is_forward_and_the_rest_of_it_backward(tmp_path):
    phases = median_ms(run_of(tmp_path, "functional", same=True).rank)
    assert phases["Fwd"] > 2.9 and phases["Bwd"] > 5 * phases["Other"], phases


@FULL
def test_an_own_update_after_several_backwards_makes_one_step(tmp_path):
    rank = run_of(tmp_path, "own_optimizer_accumulates").rank
    backwards = rank.occurrences["Bwd"].step
    assert [int((backwards == step).sum()) for step in range(10, 40)] == [2] * 30


def test_an_update_written_into_the_loop_is_opt_and_what_follows_is_not(tmp_path):
    rank = run_of(tmp_path, "inline_update").rank
    phases = median_ms(rank)
    assert phases["Opt"] > 3.9 and 1.9 < phases["Other"] < phases["Opt"], phases


@FULL
def test_a_written_loss_is_forward_and_the_metric_in_it_is_not(tmp_path):
    rank = run_of(tmp_path, "written_loss", same=True).rank
    phases = median_ms(rank)
    assert phases["Fwd"] > 4.5 and phases["Other"] > 2.0, phases
    assert phases["Fwd"] > phases["Other"], phases
    lines = {rank.samples.locations[place].line for place in rank.samples.place[rank.samples.phase == PHASES.index("Fwd")] if place >= 0}
    source = (PROGRAMS / PROGRAM).read_text().splitlines()
    assert lines.isdisjoint(number for number, text in enumerate(source, 1) if "0 * value[0]" in text)


@FULL
def test_a_rare_metric_is_not_taken_for_the_loss(tmp_path):
    rank = run_of(tmp_path, "rare_metric").rank
    other = sorted(rank.phase_ns["Other"][24:])
    assert other[-3] > 150e6 > 1e9 * 0.002 > other[len(other) // 2], [value / 1e6 for value in other]
    assert median_ms(rank)["Fwd"] > 1.9


@FULL
def test_what_a_method_does_around_its_networks_is_forward(tmp_path):
    phases = median_ms(run_of(tmp_path, "method_around_networks").rank)
    assert phases["Fwd"] > 4.9 and phases["Other"] < 0.5 * phases["Fwd"], phases


@pytest.mark.full
def test_making_a_log_record_is_log_and_its_caller_is_the_owner_s_line(tmp_path):
    phases = median_ms(run_of(tmp_path, "logged", same=True).rank)  # equal output: file, line and function too
    assert phases["Log"] > 5.9, phases


@pytest.mark.parametrize("style", [pytest.param("switches_back", marks=FULL), "switches_later"])
def test_an_evaluation_begins_with_the_switch_to_it_and_holds_the_one_back_where_it_makes_that(tmp_path, style):
    run = run_of(tmp_path, style)
    to, back = (np.array(text.split(), dtype=np.int64) for text in run.output.splitlines())
    spans = run.rank.occurrences["Eval"]
    assert (spans.start_ns < to).all()
    assert (spans.end_ns > back).all() if style == "switches_back" else (spans.end_ns < back).all()


@FULL
def test_a_loader_first_iterated_by_another_thread_is_for_training(tmp_path):
    (loader,) = run_of(tmp_path, "thread").rank.loaders
    assert loader.role == "train"


def test_a_network_of_functions_alone_has_a_forward(tmp_path):
    run = probed(tmp_path / "run", "functions_alone.py", capture="diagnose")
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="run", project=str(PROGRAMS))
    assert found.phases["Fwd"].share > 0.15 and found.phases["Other"].share < 0.25, found.phases
    assert "host_code" not in [finding.kind for finding in diagnose(found).findings]
    assert plain("functions_alone.py") == run.output


def test_an_own_update_behind_several_backwards_ends_the_step(tmp_path):
    run = probed(tmp_path / "run", "own_update_of_parts.py", capture="diagnose")
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="run", project=str(PROGRAMS))
    updates = found.updates
    assert (updates.optimizer, updates.backwards_per_step, updates.micro_batch, updates.optimizers) == ("move", 6.0, 4, 1)
    assert 60 < found.warmup_steps + found.steps < 120  # not one for each of 540 backwards; how long the start takes is the machine's
    assert found.phases["Bwd"].per_occurrence.n == 6 * found.steps and found.phases["Opt"].per_occurrence.n == found.steps
    assert plain("own_update_of_parts.py") == run.output


def test_an_own_update_that_a_run_is_told_of_is_recorded_from_the_first_one_on(tmp_path):
    told = json.dumps([["data/programs/own_update_of_parts.py", "move"]])
    run = probed(tmp_path / "run", "own_update_of_parts.py", capture="fidelity", TRAINFLASH_UPDATES=told)
    assert run.returncode == 0, run.output
    (record,) = (tmp_path / "run").glob("training-*.jsonl")
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    updates = [line for line in lines if line["k"] == "update"]
    assert [len(line["losses"]) for line in updates] == [6] * 90
    assert all(line["grads"] == 4 and line["grad_norm"] is not None for line in updates)
    weights = [line for line in lines if line["k"] == "weights"]
    assert weights[-1]["n"] == 90 and len({line["digest"] for line in weights}) == len(weights) > 3
    assert next(line for line in lines if line["k"] == "end")["swallowed"] == {}
    assert plain("own_update_of_parts.py") == run.output
