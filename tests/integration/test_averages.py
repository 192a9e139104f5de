"""Averages of the weights that nobody has evaluated yet: one that is made more seldom is refused, one that is made faster is the same."""

from __future__ import annotations

import os
import sys

import pytest

from trainflash import fidelity, sandbox
from trainflash.schema import Command, Fidelity

PROGRAM = """
import copy

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
KEPT
for step in range(40):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        MADE
print("end")
"""
KEPT = {  # what is kept, and how it is brought up to date
    "list": ("kept = [each.detach().clone() for each in model.parameters()]", "zip(kept, model.parameters())"),
    "mapping": (
        "kept = {name: each.detach().clone() for name, each in model.named_parameters()}",
        "zip(kept.values(), model.parameters())",
    ),
    "network": ("kept = copy.deepcopy(model)", "zip(kept.parameters(), model.parameters())"),
}
EVERY, SELDOM = "for old, new in PAIRS: old.lerp_(new, 0.1)", "for old, new in PAIRS if step % 4 == 0 else (): old.lerp_(new, 0.1)"
OTHERWISE = "for old, new in PAIRS: old.mul_(0.9).add_(new, alpha=0.1)"
COMMAND = Command((sys.executable, "train.py"))


def judged(tmp_path, kind: str, made: str) -> Fidelity:
    kept, pairs = KEPT[kind]
    project = tmp_path / "project"
    project.mkdir()
    base = PROGRAM.replace("KEPT", kept)
    (project / "train.py").write_text(base.replace("MADE", EVERY.replace("PAIRS", pairs)))
    os.environ["OMP_NUM_THREADS"] = "1"
    box = sandbox.create(project, tmp_path / "sandbox")
    (sandbox.project_in(box, "candidate") / "train.py").write_text(base.replace("MADE", made.replace("PAIRS", pairs)))
    return fidelity.check(box, COMMAND, COMMAND, tmp_path / "runs")


@pytest.mark.parametrize("kind", ["list", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("mapping", "network"))])
def test_an_average_that_is_made_more_seldom_is_another(tmp_path, kind):
    found = judged(tmp_path, kind, SELDOM)
    assert (found.verdict, found.changed) == ("changed", ("weights",)), found.reasons
    assert "another average of the same weights" in found.reasons[0]


@pytest.mark.full
@pytest.mark.parametrize("kind", list(KEPT))
def test_an_average_that_is_made_in_another_way_is_the_same(tmp_path, kind):
    found = judged(tmp_path, kind, OTHERWISE)
    assert found.verdict == "same", found.reasons
