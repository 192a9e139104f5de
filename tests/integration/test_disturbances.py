"""Disturbances of a training under the probe: it goes on, and what was recorded is true."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from probed import PROBE, PROGRAMS, environment, probed, steady_ms

from trainflash.errors import ProgramFailed
from trainflash.launch import steps_so_far
from trainflash.summary import summarize
from trainflash.trace import load

LOOP = """
import os, signal, subprocess, sys, time
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps, between=lambda step: None):
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().mean()
        between(step)
        loss.backward()
        optimizer.step()
"""


def program(tmp_path: Path, source: str) -> Path:
    path = tmp_path / "train.py"
    path.write_text(LOOP + source)
    return path


def test_a_process_that_is_suspended_and_a_clock_that_is_set(tmp_path):
    """The stop is one long step, outside the phases; no time of the probe comes from a clock that can be set."""
    script = program(
        tmp_path,
        """
def suspend(step):
    real = time.time()
    time.time = lambda: real + (-1) ** step * 1e6
    time.time_ns = lambda: int(time.time() * 1e9)
    if step == 20:
        subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)
train(40, suspend)
""",
    )
    run = probed(tmp_path / "run", str(script), capture="diagnose", TRAINFLASH_OWN=str(tmp_path))
    assert run.returncode == 0 and run.rank.steps == 40 and run.rank.swallowed == {}, run.output
    steady_ms(run.rank)
    (long,) = (run.rank.wall_ns > 0.9e9).nonzero()[0].tolist()
    assert long in (20, 21) and run.rank.phase_ns["Other"][long] > 0.9e9
    assert summarize(run.trace, run="r", project="p").step_ms.p50_ms < 500


@pytest.mark.full
def test_a_program_that_starts_a_second_training(tmp_path):
    script = program(
        tmp_path,
        """
if sys.argv[1:]:
    train(15)
else:
    other = subprocess.Popen([sys.executable, __file__, "again"])
    train(40)
    other.wait()
    train(1)
""",
    )
    run = probed(tmp_path / "run", str(script), TRAINFLASH_OWN=str(tmp_path))
    assert run.returncode == 0, run.output
    assert [(rank.rank, rank.steps) for rank in run.trace.ranks] == [(0, 41)]
    (other,) = run.trace.others
    assert "train.py again, 15 steps" in other
    assert summarize(run.trace, run="r", project="p").ranks == 1


@pytest.mark.full
@pytest.mark.parametrize(("room", "seen"), [(4096, False), (700_000, True)], ids=["from the start", "later"])
def test_a_disk_without_room(tmp_path, room, seen):
    """A limit on the size of files acts as a full disk does; the program itself writes to its output only."""
    script, run_dir = program(tmp_path, "train(12000)\nprint('done')\n"), tmp_path / "run"
    run_dir.mkdir()
    ours = {"TRAINFLASH_RUN": str(run_dir), "TRAINFLASH_OWN": str(tmp_path), "TRAINFLASH_CAPTURE": "timing", "PYTHONPATH": str(PROBE)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment(**ours), capture_output=True, text=True, timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    if not seen:
        with pytest.raises(ProgramFailed, match="could not write events"):
            load(run_dir)
        return
    (rank,) = load(run_dir).ranks
    assert steps_so_far(run_dir) == 12000 and 1000 < rank.steps < 12000 and rank.dropped_events > 0
    assert summarize(load(run_dir), run="r", project="p").steps > 900


@pytest.mark.full
def test_a_killed_training_has_a_summary(tmp_path):
    run = probed(tmp_path, "plain_loop.py", "steps=60", "die=9", "workers=2", capture="diagnose")
    assert run.returncode == -9 and run.rank.steps == 30
    assert summarize(run.trace, run="r", project=str(PROGRAMS)).steps >= 10  # what a look or a busy machine disturbed is left out
