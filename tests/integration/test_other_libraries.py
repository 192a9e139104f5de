"""Work of libraries that know nothing of tensors, done inside the network: seen by what the owner's line has called."""

from __future__ import annotations

from pathlib import Path

import pytest
from probed import diagnosed

PROGRAM = """
import numpy as np
import torch
from sklearn.metrics import f1_score
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 6))

    def forward(self, x, y):
        out = self.net(x)
        self.score = SCORE
        return nn.functional.cross_entropy(out, y)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(60):
    loss = net(torch.randn(4000, 64), torch.randint(0, 6, (4000,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


def spent(tmp_path: Path, score: str) -> tuple[float, float]:
    """Share of the line, and how much of it in other libraries."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.replace("SCORE", score), encoding="utf-8")
    at = next(number for number, row in enumerate(PROGRAM.splitlines(), 1) if "SCORE" in row)
    lines = [line for line in diagnosed(tmp_path, path).lines if line.location.line == at]
    return sum(line.share for line in lines), sum(line.in_library for line in lines)


def test_a_score_of_scikit_learn_counts_for_its_line(tmp_path):
    share, inside = spent(tmp_path, 'f1_score(y.numpy(), out.argmax(1).numpy(), average="macro")')
    assert share > 0.1 and inside > 0.4 * share  # the rest are the conversions, and samples of a busy machine


@pytest.mark.full
@pytest.mark.parametrize("score", ["torch.nn.functional.one_hot(out.argmax(1), 600).float().mean()", "sum(i * i for i in range(60_000))"])
def test_work_of_torch_and_of_the_program_itself_does_not(tmp_path, score):
    share, inside = spent(tmp_path, score)
    assert share > 0.02 and inside == 0
