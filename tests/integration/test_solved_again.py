"""Equations with one matrix that never changes: factorising it is work that repeats, whatever they are solved for."""

from __future__ import annotations

from pathlib import Path

import pytest
from probed import diagnosed

PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
SYSTEM = torch.eye(120) + 0.01 * torch.randn(120, 120)
step = 0


def diffuse(u):
    return torch.linalg.solve(MATRIX, u.T).T


net = nn.Linear(120, 120)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(40):
    u = torch.randn(8, 120)
    for _ in range(3):
        u = diffuse(u + net(u))
    loss = u.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


def repeated(tmp_path: Path, matrix: str) -> list:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.replace("MATRIX", matrix), encoding="utf-8")
    line = next(number for number, row in enumerate(PROGRAM.splitlines(), 1) if "solve(" in row)
    return [work for work in diagnosed(tmp_path, path).repeated if work.location.line == line]


def test_the_same_matrix_is_factorised_again(tmp_path):
    (work,) = repeated(tmp_path, "SYSTEM")
    assert (work.during, work.qualname, work.distinct) == ("operators", "diffuse", 1)
    assert work.repeats == work.calls - 1 >= 8
    assert 0 < work.share < 1


@pytest.mark.full
@pytest.mark.parametrize("matrix", ["SYSTEM * (1 + torch.rand(()))", "SYSTEM + net.weight"])
def test_another_matrix_each_time_is_not(tmp_path, matrix):
    assert repeated(tmp_path, matrix) == []
