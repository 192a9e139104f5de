"""Programs whose predictions are selected compute the same loss and gradients, whatever forms the predictions take on their way."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from knob_runs import applied, candidate_here

PROGRAM = """import json
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
ids = torch.randint(50, (4, 6))
labels = torch.where(torch.rand(4, 6) < 0.4, ids, -100)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Embedding(50, 8)
        self.head = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 50))
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, ids, labels):
BODY


model = Masked()
loss = model(ids, labels)
loss.backward()
print(json.dumps([loss.item(), *[p.grad.norm().item() for p in model.parameters() if p.grad is not None]]))
"""
BODIES = {
    "row": ["logits = self.head(self.body(ids))", "return F.cross_entropy(logits.view(-1, 50), labels.view(-1))  # here"],
    "row first": [
        "h = self.body(ids).reshape(-1, 8)",
        "logits = self.head(h)",
        "return F.cross_entropy(logits.view(-1, 50), labels.view(-1))  # here",
    ],
    "flat targets": ["flat = labels.flatten()", "return F.cross_entropy(self.head(self.body(ids)).view(-1, 50), flat)  # here"],
    "small targets": [
        "small = labels.int()",
        "x = self.head(self.body(ids))",
        "return F.cross_entropy(x.view(-1, 50), small.view(-1).long())  # here",
    ],
    "classes second": ["return self.criterion(self.head(self.body(ids)).transpose(1, 2), labels)  # here"],
    "shifted": [
        "logits = self.head(self.body(ids)).double()",
        "early, late = 0, 1",
        "logits = logits[:, :-1].contiguous()",
        "targets = labels[:, 1:].contiguous()",
        "return F.cross_entropy(logits.reshape(-1, 50), targets.reshape(-1), reduction='sum')  # here",
    ],
    "tied": [
        "h = self.body(ids)",
        "return F.cross_entropy(F.linear(h, self.body.weight).flatten(0, 1), labels.flatten(), label_smoothing=0.1)  # here",
    ],
}


@pytest.mark.parametrize("form", BODIES)
def test_the_same_is_computed(tmp_path, form):
    source = PROGRAM.replace("BODY", "\n".join(f"        {row}" for row in BODIES[form]))
    changed = applied(tmp_path, candidate_here(tmp_path, "counted_targets", source).diff)["train.py"]
    assert changed.count("[counted]") == 2
    found = []
    for text in (source, changed):
        (tmp_path / "train.py").write_text(text, encoding="utf-8")
        ran = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True, capture_output=True, text=True)
        found.append([each or 0.0 for each in json.loads(ran.stdout)])
    assert found[1] == pytest.approx(found[0], rel=1e-5, abs=1e-7)
