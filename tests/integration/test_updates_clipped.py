"""Clipping gradients is a part of the update, and changes nothing of the training."""

from __future__ import annotations

from pathlib import Path

from probed import diagnosed

SOURCE = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)])
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
for number in range(80):
    loss = net(torch.randn(8, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=False)
    nn.utils.clip_grad_value_(net.parameters(), 1.0)
    optimizer.step()
    print(loss.item().hex())
"""


def test_clipping_is_a_part_of_the_update(tmp_path: Path):
    path = tmp_path / "train.py"
    path.write_text(SOURCE, encoding="utf-8")
    found = diagnosed(tmp_path, path)
    clips = next(number for number, row in enumerate(SOURCE.splitlines(), 1) if "clip_grad_norm_" in row)
    site = next(each for each in found.sites if each.location.line == clips)  # the costliest: a sample may fall just before the call
    assert site.phase == "Opt"
    assert any(place.function == "clip_grad_norm_" for place in site.path)
