"""A part of the loss that lost its gradient is refused, though rounding grows so fast in the program that losses and weights hide it."""

from __future__ import annotations

import os
import sys

import pytest

from trainflash import fidelity, sandbox
from trainflash.schema import Command

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(12, 8), nn.Linear(8, 12)
        self.register_buffer("codes", torch.randn(64, 8))

    def forward(self, x):
        z = self.encode(x)
        code = self.codes[NEAREST]
        commitment = COMMITMENT
        return self.decode(z + (code - z).detach()), commitment


model = Coder()
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for step in range(60):
    x = torch.randn(64, 12)
    out, commitment = model(x)
    loss = F.mse_loss(out, x) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
"""
FIRST = "((z[:, None] - self.codes) ** 2).sum(-1).argmin(1)"
BY_PRODUCT = "torch.addmm((self.codes * self.codes).sum(1), z, self.codes.t(), alpha=-2).argmin(1)"
HELD, CUT = "((z - code) ** 2).mean()", "((z.detach() - code) ** 2).mean()"
COMMAND = Command((sys.executable, "train.py"))


@pytest.mark.parametrize(
    ("nearest", "commitment", "changed"),
    [(BY_PRODUCT, HELD, set()), (BY_PRODUCT, CUT, {"gradients"}), (BY_PRODUCT, "(code - z).square().mean()", set())],
    ids=["by a product", "without its gradient", "the other way round"],
)
def test_a_part_of_the_loss_that_lost_its_gradient_is_no_rounding(tmp_path, nearest, commitment, changed):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(PROGRAM.replace("NEAREST", FIRST).replace("COMMITMENT", HELD))
    os.environ["OMP_NUM_THREADS"] = "1"
    box = sandbox.create(project, tmp_path / "sandbox")
    (sandbox.project_in(box, "candidate") / "train.py").write_text(PROGRAM.replace("NEAREST", nearest).replace("COMMITMENT", commitment))
    found = fidelity.check(box, COMMAND, COMMAND, tmp_path / "runs")
    assert changed <= set(found.changed) and (found.verdict == "changed") == bool(changed), found.reasons
