"""Every style of training loop under the probe: right steps and phases, the program unmodified."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib.util import find_spec

import pytest
from probed import PROBE, PROGRAMS, Run, environment, plain, probed, steady_ms

STYLES = {  # steps, then least milliseconds a step that the planted sleeps must show
    "gan_critic_first": (24, {"Data": 3.9, "Fwd": 5.9}),
    "gan_maker_first": (24, {"Data": 3.9, "Fwd": 5.9}),
    "gan_five_to_one": (24, {"Data": 19.5, "Fwd": 21.9}),
    "gan_five_to_one_other_order": (24, {"Data": 19.5, "Fwd": 21.9}),
    "gan_two_maker_updates": (24, {"Data": 3.9, "Fwd": 7.9}),
    "gan_full_batch": (24, {"Fwd": 5.9}),
    "gan_fakes_without_gradients": (24, {"Fwd": 9.8}),
    "scaler": (24, {"Data": 3.9, "Fwd": 1.9, "Opt": 3.9}),
    "several_models": (24, {"Data": 3.9, "Fwd": 1.9}),
    "rollouts": (24, {"Data": 2.6}),
    "acting_copy": (24, {"Data": 2.6}),
    "rollouts_eval_mode": (24, {"Data": 2.6, "Eval": 0.6}),
    "rollouts_eval_function": (24, {"Data": 2.6, "Eval": 0.6}),
    "work_after_rollouts": (24, {"Data": 2.6, "Other": 4.4, "Eval": 0.6}),
    "tests_of_a_policy": (24, {"Data": 3.9, "Eval": 3.9}),
    "value_learning": (24, {"Data": 1.0, "Fwd": 1.9}),
    "work_after_evaluation": (24, {"Fwd": 1.9, "Eval": 0.4, "Other": 4.4}),
    "forces_in_evaluation": (24, {"Fwd": 1.9, "Eval": 1.4}),
    "copies_for_tasks": (24, {"Fwd": 1.2}),
    "copies_for_clients": (23, {"Fwd": 1.3}),
    "acting_later": (24, {"Data": 2.9}),
    "acting_later_and_tested": (24, {"Data": 2.9}),
    "texts_to_look_at": (24, {"Fwd": 1.9, "Eval": 1.9}),
    "acting_in_eval_mode": (24, {"Data": 3.9}),
    "accuracy_before_training": (24, {"Fwd": 1.9, "Eval": 0.5}),
    "teacher_first": (24, {"Fwd": 5.9, "Eval": 0.1}),
    "unannounced_evaluation": (24, {"Fwd": 1.9, "Eval": 1.4}),
    "held_out_every_step": (24, {"Fwd": 1.9, "Eval": 1.9}),
    "compiled_everything": (24, {"Data": 3.9, "Fwd": 0.0, "Opt": 0.0}),
    "compiled_train_step": (24, {"Data": 3.9, "Fwd": 0.0, "Bwd": 0.0, "Opt": 0.0}),
    "marks": (24, {"Data": 1.9, "Fwd": 2.9, "Opt": 0.9, "Eval": 0.4}),
    "marked_thread": (24, {"Data": 1.9, "Fwd": 2.9, "Opt": 0.9, "Eval": 0.4}),
    "marks_over_hooks": (24, {"Data": 4.9, "Fwd": 3.9, "Opt": 0.9}),
}
QUICK = ("gan_full_batch", "acting_copy", "acting_later", "tests_of_a_policy", "work_after_rollouts", "value_learning", "copies_for_tasks")
QUICK += ("marks",)


def needs(package: str) -> None:
    """Skip without `package`; it is imported in the program only."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize("style", [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in STYLES])
def test_every_style_gives_its_steps_and_phases(tmp_path, style):
    steps, least_ms = STYLES[style]
    run = probed(tmp_path, "loop_styles.py", style)
    assert run.returncode == 0, run.output
    phases = steady_ms(run.rank, first=5)
    assert run.rank.steps == steps and run.rank.swallowed == {}
    for name, least in least_ms.items():
        assert phases[name] > least, (name, phases)
    for name in {"Eval", "Ckpt"} - least_ms.keys():
        assert phases[name] < 0.1, (name, phases)


@pytest.mark.parametrize("style", ["gan_five_to_one", pytest.param("gan_five_to_one_other_order", marks=pytest.mark.full)])
def test_each_step_of_unequal_optimizers_is_a_whole_one(tmp_path, style):
    rank = probed(tmp_path, "loop_styles.py", style).rank
    updates = rank.occurrences["Opt"].step
    assert [int((updates == step).sum()) for step in range(24)] == [6] * 24


@pytest.mark.full
def test_an_optimizer_that_never_steps_costs_the_first_steps_only(tmp_path):
    assert 12 <= probed(tmp_path, "loop_styles.py", "unused_optimizer").rank.steps <= 24


@pytest.mark.full
@pytest.mark.parametrize("style", ["compiled_everything", "compiled_train_step"])
def test_dynamo_compiles_the_same_frames_and_losses_are_the_same(tmp_path, style):
    def said(output: str) -> list[str]:
        return [line for line in output.splitlines() if not line.startswith("W")]  # warnings carry times

    assert said(probed(tmp_path, "loop_styles.py", style, capture="diagnose").output) == said(plain("loop_styles.py", style))


@pytest.mark.full
def test_copies_of_a_model_run_their_own_weights(tmp_path):
    run = probed(tmp_path, "loop_styles.py", "copies", capture="diagnose")
    said = dict(line.split(" ", 1) for line in run.output.splitlines() if line.startswith(("copies", "slots", "own")))
    assert said == {"copies": str([True] * 7), "slots": str([True] * 3), "own": "weights True True"}, run.output
    assert "TracerWarning" not in run.output and run.rank.swallowed == {}


def ranks_of(run: Run) -> list[tuple[int, int, int]]:
    assert run.returncode == 0, run.output
    return [(rank.rank, rank.world_size, rank.steps) for rank in run.trace.ranks]


def launched(tmp_path, launcher: tuple[str, ...], style: str, port: str = "launched", **extra: str) -> Run:
    return probed(tmp_path / "run", "distributed_styles.py", style, str(tmp_path / "saved"), port, launcher=launcher, **extra)


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


BOTH = [(0, 2, 24), (1, 2, 24)]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")


@pytest.mark.full
def test_spawned_ranks(tmp_path):
    run = launched(tmp_path, (), "data_parallel", "29611")
    assert ranks_of(run) == BOTH
    assert all(steady_ms(rank)["Bwd"] > 0 for rank in run.trace.ranks)


@pytest.mark.full
def test_fully_sharded_ranks_save_a_distributed_checkpoint(tmp_path):
    run = launched(tmp_path, ("-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29612"), "fully_sharded")
    assert ranks_of(run) == BOTH
    for rank in run.trace.ranks:
        assert len(rank.occurrences["Ckpt"].start_ns) == 1 and len(rank.occurrences["Fwd"].start_ns) == 24


@pytest.mark.full
def test_fully_sharded_ranks_of_the_older_wrapper(tmp_path):
    run = launched(tmp_path, TORCHRUN, "fully_sharded_first")
    assert ranks_of(run) == BOTH
    assert all(len(rank.occurrences["Fwd"].start_ns) == 24 and rank.swallowed == {} for rank in run.trace.ranks)


@pytest.mark.full
def test_accelerate_in_two_ranks(tmp_path):
    needs("accelerate")
    assert ranks_of(launched(tmp_path, TORCHRUN, "accelerated")) == BOTH


@pytest.mark.full
def test_spawned_ranks_stop_together(tmp_path):
    """They are told neither rank nor world size by the environment of the process that imported torch."""
    run = launched(tmp_path, (), "data_parallel", free_port(), TRAINFLASH_MAX_SECONDS="0", TRAINFLASH_MIN_STEPS="8")
    (first, second) = ranks_of(run)
    assert first[2] == second[2] and 8 < first[2] < 24  # not at eight: both go on to a step that neither has passed
    assert {path.name for path in run.run_dir.glob("stop-at.arrived-*")} == {"stop-at.arrived-0", "stop-at.arrived-1"}


@pytest.mark.full
def test_dynamo_compiles_no_more_of_a_data_parallel_model(tmp_path):
    """The first step under the probe enters the model by a wrapped call, so torch may meet one break less."""

    def counted(output: str) -> tuple[list[str], list[int]]:
        lines = output.splitlines()
        (counts,) = (line.split()[1:] for line in lines if line.startswith("compiled"))
        return sorted(line for line in lines if line.startswith("loss")), [int(count) for count in counts]

    run = probed(tmp_path, "distributed_styles.py", "compiled", "", free_port(), capture="diagnose")
    losses, (frames, breaks) = counted(run.output)
    plain_losses, (plain_frames, plain_breaks) = counted(plain("distributed_styles.py", "compiled", "", free_port()))
    assert losses == plain_losses and len(losses) == 2 and 0 < frames <= plain_frames and breaks <= plain_breaks
    assert ranks_of(run) == BOTH and all(rank.swallowed == {} for rank in run.trace.ranks)


@pytest.mark.full
def test_accelerate_launch(tmp_path):
    """On a CPU it starts one process (several need MPI)."""
    needs("accelerate")
    launcher = ("-m", "accelerate.commands.launch", "--cpu", "--num_processes=1", "--num_machines=1", "--mixed_precision=no")
    assert ranks_of(launched(tmp_path, (*launcher, "--dynamo_backend=no"), "accelerated")) == [(0, 1, 24)]


def test_a_module_is_run_by_a_shell_script(tmp_path):
    script = tmp_path / "train.sh"
    script.write_text(f'cd "{PROGRAMS}"\nexport SEED=1\nexec "$PYTHON" -m pkg.train "$@"\n')
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    ours = {"TRAINFLASH_RUN": str(run_dir), "TRAINFLASH_OWN": str(PROGRAMS), "TRAINFLASH_CAPTURE": "timing", "PYTHONPATH": str(PROBE)}
    command = ["sh", str(script), "--lr", "1"]
    done = subprocess.run(command, env=environment(PYTHON=sys.executable, **ours), cwd=os.sep, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rank = Run(run_dir, 0, "").rank
    assert rank.steps == 24 and rank.argv[1:] == ("--lr", "1")


@pytest.mark.full
def test_accelerate_accumulates(tmp_path):
    needs("accelerate")
    rank = probed(tmp_path, "accelerate_loop.py").rank
    phases = steady_ms(rank, first=4)
    assert rank.steps == 12 and phases["Data"] > 7.9 and phases["Fwd"] > 3.9 and rank.swallowed == {}
    assert phases["Bwd"] > 3.9, phases


@pytest.mark.full
@pytest.mark.parametrize(("style", "steps"), [("trainer", 24), ("accumulating_trainer", 6), ("fabric", 24)])
def test_lightning(tmp_path, style, steps):
    needs("lightning")
    run = probed(tmp_path / "run", "lightning_styles.py", style, str(tmp_path / "out"))
    assert run.returncode == 0 and f"steps {steps}" in run.output, run.output
    rank = run.rank
    phases = steady_ms(rank, first=2)
    batches = 24 // steps
    assert rank.steps == steps and rank.swallowed == {}
    assert phases["Data"] > 3.9 * batches and phases["Fwd"] > 1.9 * batches and phases["Opt"] > 0
    if style == "trainer":
        assert len(rank.occurrences["Eval"].start_ns) in (3, 4) and len(rank.saves) in (0, 1) and phases["Log"] > 0
    if style == "fabric":
        assert phases["Bwd"] > 2.9 and phases["Opt"] > 2.9, phases


@pytest.mark.parametrize(
    "logger", [pytest.param(each, marks=pytest.mark.full) for each in ("tensorboard", "wandb", "canvas", "rich")] + ["picture"]
)
def test_loggers_and_pictures_are_log(tmp_path, logger):
    if logger in ("tensorboard", "wandb"):
        needs(logger)
    run = probed(tmp_path / "run", "loggers.py", logger, str(tmp_path))
    assert run.returncode == 0, run.output
    assert len(run.rank.occurrences["Log"].start_ns) >= 24 and run.rank.steps == 24 and run.rank.swallowed == {}
