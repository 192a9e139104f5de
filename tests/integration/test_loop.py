"""The whole loop on a real program: nothing changes before approval, and then exactly the diff that was shown."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest
from owner import fingerprint


@pytest.fixture
def tuned(user):
    before = fingerprint(user.project)
    ran = user.trainflash("tune", ".", "--budget", "150s", "--json", "--", sys.executable, "train.py")
    assert fingerprint(user.project) == before, "tune changed the project"
    assert ran.code == 0, ran.err
    return user, ran.document


@pytest.mark.full
def test_tune_finds_proves_and_writes_back_only_when_approved(tuned):
    user, document = tuned
    assert document["accepted"], document["stopped_because"]
    assert document["status"] == "needs_approval"
    assert document["speedup"]["ci_low"] > 1.02
    assert document["experiments"][0]["verdict"]["fidelity"]["verdict"] == "same"
    before = fingerprint(user.project)

    shown = user.trainflash("writeback", "--accepted", "--dry-run", "--json").document
    assert shown["approvable"] and shown["files"] == ["train.py"]

    refused = user.trainflash("writeback", "--accepted")
    assert refused.code == 5 and shown["digest"] in refused.err
    wrong = user.trainflash("writeback", "--accepted", "--approve", "0" * 64)
    assert wrong.code == 5
    assert fingerprint(user.project) == before

    written = user.trainflash("writeback", "--accepted", "--approve", shown["digest"])
    assert written.code == 0, written.err
    assert user.git("diff").splitlines()[4:] == shown["diff"].splitlines()[4:]

    entries = user.trainflash("log", "--json").document["entries"]
    assert [entry["kind"] for entry in entries][:3] == ["sandbox", "diagnosis", "experiment"]
    assert [entry["decision"] for entry in entries if entry["kind"] == "writeback"] == ["refused", "refused", "approved"]

    undone = user.trainflash("writeback", "--undo")
    assert undone.code == 0, undone.err
    assert {n: v[2] for n, v in fingerprint(user.project).items() if n == "train.py"} == {
        n: v[2] for n, v in before.items() if n == "train.py"
    }


def answer_on_terminal(user, arguments: list[str], answer: str) -> tuple[int, str]:
    leader, follower = pty.openpty()
    running = subprocess.Popen(
        user.command(*arguments), cwd=user.project, env=user.environment, stdin=follower, stdout=follower, stderr=follower, close_fds=True
    )
    os.close(follower)
    os.write(leader, answer.encode())
    said = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(leader)
    return running.wait(timeout=60), said.decode(errors="replace")


@pytest.mark.full
def test_approval_on_the_terminal(tuned):
    user, _ = tuned
    before = fingerprint(user.project)
    code, said = answer_on_terminal(user, ["writeback", "--accepted"], "n\n")
    assert code == 5 and "not approved" in said
    assert fingerprint(user.project) == before
    code, said = answer_on_terminal(user, ["writeback", "--accepted"], "y\n")
    assert code == 0, said
    assert "cache" in user.git("diff")


def test_diagnose_plan_and_explain(user):
    found = user.trainflash("diagnose", "--json", "--", sys.executable, "train.py")
    assert found.code == 0, found.err
    document = found.document
    assert document["findings"][0]["kind"] == "input_cpu"
    assert document["findings"][0]["location"]["file"] == "train.py"
    assert sum(phase["share"] for phase in document["phases"].values()) == pytest.approx(1, abs=0.01)
    again = user.trainflash("diagnose", "--run", document["run"], "--json").document
    assert {**again, "sandbox": 0} == {**document, "sandbox": 0}
    plan = user.trainflash("optimize", "plan", "--json", "--", sys.executable, "train.py").document
    assert plan["candidates"][0]["knob"] == "memoize_function"
    assert plan["candidates"][0]["diff"].startswith("--- a/train.py")
    assert user.trainflash("explain", plan["candidates"][0]["knob"]).code == 0
    again = user.trainflash("optimize", "plan", "--json").document
    assert again["candidates"] == plan["candidates"], "without a command it is that of the diagnosis"


CHECKED = """
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--check", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
torch.set_num_threads(1)
torch.autograd.set_detect_anomaly(args.check)
model = nn.Sequential(*[layer for _ in range(12) for layer in (nn.Linear(64, 64), nn.Tanh())], nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(4096, 64), torch.randn(4096, 1)
for step in range(args.steps):
    rows = torch.randint(0, 4096, (32,))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@pytest.mark.full
def test_what_the_command_itself_switches_on_is_tried_without_it_and_told(user):
    (user.project / "train.py").write_text(CHECKED)
    before = fingerprint(user.project)
    ran = user.trainflash("tune", ".", "--budget", "150s", "--json", "--", sys.executable, "train.py", "--check", "--steps", "1500")
    assert ran.code == 0, ran.err
    assert ran.document["accepted"] and ran.document["approve"] is None
    assert ran.document["run_as"] == f"{sys.executable} train.py --steps 1500"
    refused = user.trainflash("writeback", "--accepted", "--dry-run", "--json").document
    assert not refused["approvable"] and ran.document["run_as"] in refused["reason"]
    assert fingerprint(user.project) == before
