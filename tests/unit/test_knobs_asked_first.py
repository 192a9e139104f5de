"""Work that comes under its condition: the random numbers behind it stay, or the candidate says that they may not."""

from __future__ import annotations

import pytest
from knob_runs import candidate_here

LOOP = """
import torch
from torch import nn
model = nn.Linear(4, 1)
def get_batch():
    return {batch}
for step, (x, y) in enumerate(loader):
    model(x).mean().backward()
    optimizer.step()
    error = model(get_batch()).mean().item()  # here
    if step % 100 == 0:
        print(error)
"""


@pytest.mark.parametrize(
    ("batch", "risk", "told"),
    [
        ("torch.ones(8, 4)", "same", ""),
        ("torch.randn(8, 4)", "order", "draws random numbers"),
        ("torch.randn(8, 4, generator=torch.Generator().manual_seed(3))", "same", ""),
        ("torch.stack([row for row in held])", "order", "may be a DataLoader"),
        ("unheard(8)", "order", "is not known"),
    ],
)
def test_work_that_may_draw_needs_agreement_to_another_order(tmp_path, batch, risk, told):
    found = candidate_here(tmp_path, "asked_first", LOOP.format(batch=batch))
    assert found.risk == risk and told in found.why
