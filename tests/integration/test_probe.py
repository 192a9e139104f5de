"""The probe in real training processes: phases of many styles of loop, deaths, stops, and that training is left alone."""

from __future__ import annotations

import signal

import pytest
from probed import plain, probed, steady_ms

from trainflash.launch import steps_so_far


def test_a_diagnosis_of_a_plain_loop_has_phases_and_facts(tmp_path):
    options = ("steps=30", "data_ms=8", "epochs=2", "eval_every=10", f"save={tmp_path / 'model.pt'}")
    run = probed(tmp_path / "run", "plain_loop.py", *options, capture="diagnose")
    rank = run.rank
    phases = steady_ms(rank)
    assert rank.steps == 60 and rank.epochs == 2 and run.returncode == 0 and rank.swallowed == {}
    assert phases["Data"] >= 7.5 and phases["Data"] == max(phases.values())
    assert phases["Eval"] >= 1.5 and phases["Ckpt"] > 0 and phases["Log"] > 0  # an evaluation of 18 ms every 10 steps
    train, held_out = rank.loaders
    assert (train.role, train.num_workers, train.shuffles, train.dataset, train.dataset_len) == ("train", 0, True, "Rows", 120)
    assert str(train.location).startswith("plain_loop.py:") and train.dataset_location.function == "Rows.__getitem__"
    assert len(train.iter_at_ns) == 2 and len(train.fetches.getitem_ns) == 60
    assert train.fetches.getitem_ns.mean() > 7.5e6 and train.fetches.cpu_ns.sum() < 0.5 * train.fetches.getitem_ns.sum()
    assert held_out.role == "eval" and len(held_out.iter_at_ns) == 6
    evaluations = [(one.location.function, one.batches, one.batch_size, one.grad_enabled) for one in rank.evaluations]
    assert evaluations == [("evaluate", 1, 8, False)] * 6
    assert len(rank.saves) == 6 and rank.saves[0].bytes > 1000 and rank.saves[0].location.function == "main"
    assert [(log.source, log.count) for log in rank.logs] == [("print", 60)]
    again = next(call for call in rank.repeated if call.where == "fetch")
    assert again.qualname == "Rows.__getitem__" and again.repeats >= 8 and again.hashable and again.is_method
    sleeping = [index for index, place in enumerate(rank.samples.locations) if place.function == "Rows.__getitem__"]
    share = rank.samples.weight_ns[[place in sleeping for place in rank.samples.place]].sum() / rank.samples.weight_ns.sum()
    assert share > 0.4
    assert rank.threads.torch_threads == 1 and rank.threads.set_at.function == "main" and list(rank.batch.shapes) == [(4, 16)]


def test_losses_are_the_same_to_the_last_bit_with_and_without_the_probe(tmp_path):
    options = ("steps=24", "epochs=2", "workers=2", "dropout=0.3", "eval_every=8")
    alone = plain("plain_loop.py", *options)
    run = probed(tmp_path, "plain_loop.py", *options, capture="diagnose")
    assert run.output == alone and alone.count("\n") == 48
    workers = run.trace.workers
    assert len(workers) == 4 and {worker.loader for worker in workers} == {0}
    assert sum(len(worker.fetches.getitem_ns) for worker in workers) == 48
    assert run.rank.swallowed == {} and all(worker.swallowed == {} for worker in workers)


@pytest.mark.parametrize("capture", [pytest.param("timing", marks=pytest.mark.full), "diagnose"])
def test_sigkill_loses_no_completed_step(tmp_path, capture):
    run = probed(tmp_path, "plain_loop.py", "steps=60", f"die={int(signal.SIGKILL)}", capture=capture)
    assert run.returncode == -signal.SIGKILL
    printed = run.output.strip().splitlines()
    assert len(printed) == 30 and run.rank.steps == steps_so_far(tmp_path) == 30
    steady_ms(run.rank)


@pytest.mark.full
@pytest.mark.parametrize("death", ["exit", "raise", str(int(signal.SIGSEGV)), str(int(signal.SIGABRT)), str(int(signal.SIGINT))])
def test_no_other_death_loses_a_completed_step(tmp_path, death):
    run = probed(tmp_path, "plain_loop.py", "steps=60", f"die={death}")
    assert run.returncode != 0 and run.rank.steps == 30


@pytest.mark.full
def test_it_stops_at_a_boundary_and_workers_end_too(tmp_path):
    run = probed(tmp_path, "plain_loop.py", "steps=500", "workers=2", TRAINFLASH_MAX_STEPS="12")
    assert run.returncode == 0 and run.rank.steps == 12 and run.trace.stopped
    assert len(run.output.strip().splitlines()) == 12


@pytest.mark.full
def test_it_stops_after_seconds_but_not_before_the_least_steps(tmp_path):
    run = probed(tmp_path, "plain_loop.py", "steps=500", "data_ms=1", TRAINFLASH_MAX_SECONDS="0", TRAINFLASH_MIN_STEPS="7")
    assert run.returncode == 0 and run.rank.steps == 7


def test_few_long_steps_suffice_after_twice_the_seconds(tmp_path):
    limits = {"TRAINFLASH_MAX_SECONDS": "0.4", "TRAINFLASH_MIN_STEPS": "200", "TRAINFLASH_FEW_STEPS": "3"}
    run = probed(tmp_path, "plain_loop.py", "steps=500", "data_ms=300", **limits)
    assert run.returncode == 0 and run.trace.stopped and 3 <= run.rank.steps <= 5


def test_a_data_function_is_found_and_bracketed(tmp_path):
    rank = probed(tmp_path, "get_batch.py").rank
    phases = steady_ms(rank)
    assert rank.steps == 40 and rank.data_functions[0].qualname == "get_batch"
    assert phases["Data"] >= 5.5 and phases["Eval"] >= 1.0 and phases["Data"] == max(phases.values())


@pytest.mark.full
def test_a_chain_of_generators_of_arrays_is_data(tmp_path):
    rank = probed(tmp_path, "get_batch.py", "array").rank
    phases = steady_ms(rank)
    assert rank.data_functions[0].qualname == "arrays"
    assert phases["Data"] >= 5.5 and phases["Data"] == max(phases.values()), phases


def test_moving_a_saved_file_into_its_place_is_part_of_the_checkpoint(tmp_path):
    (tmp_path / "files").mkdir()
    rank = probed(tmp_path / "run", "replaced_saves.py", str(tmp_path / "files"), capture="diagnose").rank
    assert [save.duration_ns >= 20e6 for save in rank.saves] == [True] * 3
    assert sum(rank.phase_ns["Ckpt"]) >= 60e6
    assert sum(rank.phase_ns["Other"][5:]) >= 50e6  # the program's own file is none


@pytest.mark.full
def test_a_trainer_that_hides_the_loop(tmp_path):
    rank = probed(tmp_path / "run", "hf_trainer.py", str(tmp_path / "out"), "2").rank
    phases = steady_ms(rank)
    assert rank.steps == 24  # an update each, of two batches
    assert phases["Data"] >= 30 and phases["Eval"] >= 7 and phases["Ckpt"] > 0 and phases["Log"] > 0
    assert len(rank.occurrences["Eval"].start_ns) == 3 and len(rank.occurrences["Fwd"].start_ns) == 48


STYLES = {  # steps, then what the planted sleeps must show, in milliseconds a step
    "class_based": (24, {"Data": 3.9, "Fwd": 1.9, "Eval": 0.7, "Ckpt": 0.0}),
    "accumulation": (6, {"Data": 15.9, "Fwd": 7.9}),
    "two_optimizers": (24, {"Data": 3.9, "Fwd": 5.9}),
    "lbfgs": (24, {"Data": 3.9, "Fwd": 0.9, "Opt": 0.0}),
    "lbfgs_full_batch": (24, {"Fwd": 0.9, "Opt": 0.0}),
    "lbfgs_without_modules": (24, {"Fwd": 0.4, "Bwd": 0.0, "Opt": 0.0}),
    "manual_grad": (24, {"Data": 3.9, "Fwd": 1.9, "Bwd": 0.0}),
    "full_batch": (24, {"Fwd": 1.9}),
    "iterable": (24, {"Data": 3.9, "Fwd": 1.9}),
    "no_eval_call": (24, {"Data": 3.9, "Fwd": 1.9, "Eval": 10.0}),
    "teacher": (24, {"Data": 3.9, "Fwd": 3.9}),
    "compiled": (24, {"Data": 3.9, "Fwd": 0.0}),
    "thread": (6, {"Data": 15.9, "Fwd": 7.9}),
}
QUICK = ("class_based", "lbfgs_full_batch", "lbfgs_without_modules", "manual_grad")


@pytest.mark.parametrize("style", [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in STYLES])
def test_every_style_of_loop_gives_its_steps_and_phases(tmp_path, style):
    steps, least_ms = STYLES[style]
    run = probed(tmp_path / "run", "styles.py", style, str(tmp_path / "model.pt"))
    assert run.returncode == 0, run.output
    phases = steady_ms(run.rank, first=min(3, steps // 2))
    assert run.rank.steps == steps and run.rank.swallowed == {}
    for name, least in least_ms.items():
        assert phases[name] > least, (name, phases)
    for name in {"Eval", "Ckpt"} - least_ms.keys():
        assert phases[name] < 0.1, (name, phases)


@pytest.mark.full
@pytest.mark.parametrize("style", ["compiled", "compiled_step"])
def test_dynamo_breaks_no_more_graphs_and_compiles_no_more_frames(tmp_path, style):
    run = probed(tmp_path / "run", "styles.py", style, str(tmp_path / "model.pt"), capture="diagnose")

    def counters(output: str) -> list[str]:
        return [line for line in output.splitlines() if line.startswith("compiled")]

    assert counters(run.output) == counters(plain("styles.py", style, str(tmp_path / "model.pt"))) != []


@pytest.mark.full
def test_ranks_write_their_own_files_and_stop_together(tmp_path):
    torchrun = ("-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29577")
    run = probed(tmp_path, "ranks.py", launcher=torchrun, TRAINFLASH_MAX_SECONDS="0", TRAINFLASH_MIN_STEPS="8")
    assert run.returncode == 0, run.output
    assert [(rank.rank, rank.world_size) for rank in run.trace.ranks] == [(0, 2), (1, 2)]
    assert len({rank.steps for rank in run.trace.ranks}) == 1 and run.trace.ranks[0].steps < 100


def test_debug_settings_are_found_with_the_line_that_switched_them_on(tmp_path):
    rank = probed(tmp_path, "left_on.py", capture="diagnose").rank
    found = {setting.name: setting.location.function for setting in rank.settings}
    names = ("anomaly_mode", "profiler", "deterministic", "fill_uninitialized_memory", "looking_mode")
    assert found == dict.fromkeys(names, "main")
