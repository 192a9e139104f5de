"""What a program does wrongly at one late update shows in that update's gradient or step, and nowhere else: noise hides the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_training_record import train

from trainflash.fidelity import compare
from trainflash.fidelity.record import Record

pytestmark = pytest.mark.full

PROGRAM = """
from torch.nn import functional as F
x = torch.randn(480, 16)
y = (x[:, :4].sum(1) > 0).long() + 2 * (x[:, 4] > 0).long()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(16, 48), nn.Linear(48, 48), nn.Linear(48, 4)
    def forward(self, x):
        hidden = F.gelu(self.first(x))
        return self.head(F.gelu(self.second(hidden)))
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), 1e-2, foreach=False)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
for update in range(60):
    at = torch.randint(0, 480, (24,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x[at])
    loss = F.cross_entropy(out.float(), y[at])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()
"""
KEPT = PROGRAM.replace("    optimizer.zero_grad()", "    if update != 52:\n        optimizer.zero_grad()")
ROUNDED = PROGRAM.replace("self.second(hidden)", "torch.cat([self.second(half) for half in hidden.chunk(2)])")


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> dict[str, Record]:
    place = tmp_path_factory.mktemp("plain")
    kinds = {"baseline": {}, "rerun": {}, "nudged": {"TRAINFLASH_NUDGE": "1"}}
    return {name: Record((train(place / name, PROGRAM, **more)[1],), whole=True) for name, more in kinds.items()}


def judged(plain: dict[str, Record], folder: Path, text: str):
    candidate = Record((train(folder, text)[1],), whole=True)
    return compare(plain["baseline"], candidate, rerun=plain["rerun"], nudged=plain["nudged"])


def test_a_gradient_that_is_not_cleared_once_late_is_refused(plain, tmp_path):
    found = judged(plain, tmp_path / "candidate", KEPT)
    failed = {check.name: check.evidence for check in found.checks if check.ok is False}
    assert found.verdict == "changed"
    assert set(failed) == {"gradient vectors", "step vectors"}
    assert "in update 54," in failed["gradient vectors"]


def test_a_layer_that_is_rounded_otherwise_is_not(plain, tmp_path):
    found = judged(plain, tmp_path / "candidate", ROUNDED)
    assert found.verdict == "close"
    assert {check.name for check in found.checks if check.ok} >= {"gradient vectors", "step vectors"}


def test_every_update_has_its_vectors(plain):
    (stream,) = plain["baseline"].streams
    assert all(update.gradient and update.step for update in stream.updates)
    assert stream.swallowed == {}
