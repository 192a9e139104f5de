"""Backward through networks that no optimizer trains: seen where nobody takes the gradients, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from probed import diagnosed

LOOP = """
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


def net(width=96):
    return nn.Sequential(nn.Linear(16, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 4))


student, teacher = net(), net()
optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
BEFORE


def step(x):
    BODY
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


for number in range(40):
    print(step(torch.randn(32, 16)).item().hex())
"""
TAUGHT = "loss = F.mse_loss(student(x), target)"


def program(tmp_path: Path, body: str, before: str = "") -> Path:
    path = tmp_path / "train.py"
    path.write_text(LOOP.replace("BODY", body.replace("\n", "\n    ")).replace("BEFORE", before), encoding="utf-8")
    return path


def test_a_teacher_that_nobody_froze(tmp_path):
    path = program(tmp_path, f"target = teacher(x)\n{TAUGHT}")
    found = diagnosed(tmp_path, path)
    (vain,) = found.in_vain
    line = next(number for number, row in enumerate(path.read_text().splitlines(), 1) if "target = teacher" in row)
    assert (vain.location.line, vain.direct, vain.per_step) == (line, True, 1.0)
    assert 0 < vain.share < found.phases["Bwd"].share


def test_a_part_of_what_is_called(tmp_path):
    path = program(tmp_path, "loss = whole(x).square().mean()", "whole = nn.Sequential(net(), nn.Linear(4, 16), student)")
    (vain,) = diagnosed(tmp_path, path).in_vain
    assert not vain.direct and vain.per_step == 1.0


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "before"),
    [
        pytest.param(f"with torch.no_grad():\n    target = teacher(x)\n{TAUGHT}", "", id="no_grad"),
        pytest.param(f"target = teacher(x)\n{TAUGHT}", "teacher.requires_grad_(False)", id="frozen"),
        pytest.param(f"target = teacher(x)\n{TAUGHT}", "other = torch.optim.SGD(teacher.parameters(), lr=0.1)", id="another optimizer"),
        pytest.param("loss = teacher(student(x)[:, :1].expand(-1, 16)).mean()", "", id="gradients that pass through it"),
        pytest.param(
            "inner = teacher(x).square().mean()\n"
            "grads = torch.autograd.grad(inner, list(teacher.parameters()), create_graph=True)\n"
            "loss = F.mse_loss(student(x), x[:, :4]) + sum(each.square().sum() for each in grads)",
            "",
            id="gradients that are taken by hand",
        ),
    ],
)
def test_gradients_that_somebody_takes_or_nobody_computes(tmp_path, body, before):
    assert diagnosed(tmp_path, program(tmp_path, body, before)).in_vain == ()


CLOSURE = """
def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(student(x), teacher(x))
    loss.backward()
    return loss
loss = optimizer.step(closure)
return loss
"""


def test_what_an_optimizer_calls_itself(tmp_path):
    """As Lightning trains: forward and backward run in a closure, inside the update."""
    path = program(tmp_path, CLOSURE.strip(), "")
    (vain,) = diagnosed(tmp_path, path).in_vain
    assert vain.direct and vain.per_step == 1.0
    assert "teacher(x)" in path.read_text().splitlines()[vain.location.line - 1]
