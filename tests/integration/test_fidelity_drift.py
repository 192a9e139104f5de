"""Micro-batches put together are rounded otherwise: a training that blows rounding up ends elsewhere, and is no other training."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainflash import fidelity, sandbox
from trainflash.schema import Command, Fidelity

pytestmark = pytest.mark.full

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(3)
MICRO = 1
text = torch.randint(0, 12, (4000,))
text[1::2] = (text[::2] * 5 + 3) % 12
net = nn.ModuleDict({"tokens": nn.Embedding(12, 32), "core": nn.RNN(32, 64, 2, batch_first=True), "head": nn.Linear(64, 12)})
optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
for update in range(200):
    at = torch.randint(0, 3900, (8, 1)) + torch.arange(25)
    whole = text[at]
    optimizer.zero_grad()
    for part in whole.split(MICRO):
        out = net["head"](net["core"](net["tokens"](part[:, :-1]))[0])
        loss = F.cross_entropy(out.flatten(0, 1), part[:, 1:].flatten()) * (len(part) / len(whole))
        loss.backward()
    optimizer.step()
"""
COMMAND = Command((sys.executable, "train.py"))
TOGETHER = PROGRAM.replace("MICRO = 1", "MICRO = 8")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("drift")
    project = base / "project"
    project.mkdir()
    (project / "train.py").write_text(PROGRAM)
    return sandbox.create(project, base / "sandbox")


def judged(made, folder: Path, text: str, *agreed: str) -> Fidelity:
    (sandbox.project_in(made, "candidate") / "train.py").write_text(text)
    baseline = Path(made.directory) / "baseline-runs"
    return fidelity.check(made, COMMAND, COMMAND, folder, baseline_record=baseline, allowed=frozenset(agreed))


def test_beside_an_agreed_batch_the_programs_own_noise_explains_the_rest(made, tmp_path):
    found = judged(made, tmp_path, TOGETHER, "batch")
    loss = next(check for check in found.checks if check.name == "loss")
    assert found.mean_abs_loss_delta > found.tolerance, "the program does not drift: nothing is tested"
    assert found.changed == ("batch",), found.reasons
    assert loss.ok and "the program's own noise" in loss.evidence


def test_without_the_agreement_it_is_another_batch_all_the_same(made, tmp_path):
    found = judged(made, tmp_path, TOGETHER)
    assert found.verdict == "changed" and "batch" in found.changed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* (len(part) / len(whole))", "* 0.9"),  # what scales the loss was forgotten
        ("    optimizer.step()", "    if update != 150:\n        optimizer.step()"),
        ("lr=2e-2", "lr=1.9e-2"),
        ("part[:, 1:].flatten())", "part[:, 1:].flatten(), label_smoothing=0.05)"),
    ],
)
def test_a_broken_one_hides_behind_no_noise(made, tmp_path, old, new):
    assert TOGETHER.count(old) == 1
    found = judged(made, tmp_path, TOGETHER.replace(old, new), "batch")
    assert found.verdict == "changed" and set(found.changed) - {"batch"}, found.reasons
