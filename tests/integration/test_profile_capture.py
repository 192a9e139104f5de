"""`trainflash profile capture`, as a person types it: a window of an unmodified program becomes a trace that summarizes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from trainflash.profile.events import Kind
from trainflash.profile.sources import Request, load

TRAIN = """
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range({steps}):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
open("done.txt", "w").write("to the end")
"""


@pytest.fixture
def program(user):
    def write(steps: int) -> None:
        (user.project / "short.py").write_text(TRAIN.format(steps=steps))

    return write


def test_a_window_of_steps_is_recorded(user, program):
    program(1000)
    user.environment["XLA_FLAGS"] = "--xla_example=1"
    window = ("--wait", "2", "--warmup", "1", "--active", "3", "--shapes", "--memory", "--stacks")
    done = user.trainflash("profile", "capture", *window, "--json", "--", sys.executable, "short.py")
    assert done.code == 0, done.err
    document = done.document
    assert document["schema"] == "profile_capture.v1" and document["steps"] < 20, "stopped behind the window"
    assert not (user.project / "done.txt").exists()
    (trace,) = load(Request(profile_dir=Path(document["profile_dir"]))).traces
    assert len(trace.column("step")) == 3
    assert {"aten::linear", "aten::addmm"} <= {trace.strings[name] for name in trace.events.name[trace.rows(Kind.HOST_OP)]}
    assert len(trace.column("input_dims")) and len(trace.memory.t_ns) and len(trace.rows(Kind.PYTHON))
    about = trace.provenance["trainflash"]
    assert about["window"]["active"] == 3 and about["environment"]["XLA_FLAGS"] == "--xla_example=1"


@pytest.mark.full
def test_a_program_that_ends_before_the_window_says_so(user, program):
    program(3)
    done = user.trainflash("profile", "capture", "--wait", "50", "--json", "--", sys.executable, "short.py")
    assert done.code == 6, done.err
    error = json.loads(done.out)["error"]
    assert "none was recorded" in error["message"] and "--wait" in error["mend"]
