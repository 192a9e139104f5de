"""Programs that also reckon with tensors without values, as torch's FakeTensorMode makes them: the probe reads no memory of theirs."""

from __future__ import annotations

import pytest
from probed import diagnosed

LOOP = """
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fake = FakeTensorMode()
with fake:
    planned = nn.Linear(8, 5)
for step in range(40):
    x, y = torch.randn(16, 8), torch.randint(5, (16,))
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with fake:
        IMAGINED
    print(loss.item().hex())
"""
UPDATED = """F.cross_entropy(planned(torch.randn(16, 8)), torch.randint(5, (16,))).backward()
        with torch.no_grad():
            for parameter in planned.parameters():
                parameter -= 0.1 * parameter.grad"""
STEPPED = """other = torch.optim.SGD(planned.parameters(), lr=0.1)
        F.cross_entropy(planned(torch.randn(16, 8)), torch.randint(5, (16,))).backward()
        other.step()"""
COMPARED = "F.cross_entropy(planned(torch.randn(16, 8)), torch.randint(5, (16,)))"


@pytest.mark.parametrize(
    "imagined",
    [UPDATED, pytest.param(STEPPED, marks=pytest.mark.full), pytest.param(COMPARED, marks=pytest.mark.full)],
    ids=["updated", "stepped", "compared"],
)
def test_training_goes_on(tmp_path, imagined):
    path = tmp_path / "train.py"
    path.write_text(LOOP.replace("IMAGINED", imagined), encoding="utf-8")
    found = diagnosed(tmp_path, path)
    assert found.steps > 0 and found.ignored_targets == ()
