"""Prints for each step whether anomaly mode was on in backward, or how often a checkpointed function ran."""

import json
import sys
import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
torch.set_num_threads(1)
torch.manual_seed(0)
KIND = sys.argv[1]
seen = []
calls = 0


def inner(x):
    global calls
    calls += 1
    return torch.tanh(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 512), nn.Linear(512, 1)

    def forward(self, x):
        hidden = self.first(x)
        return self.last(checkpoint(inner, hidden, use_reentrant=False) if KIND == "checkpointing" else inner(hidden))


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
if KIND == "anomaly":
    torch.autograd.set_detect_anomaly(True)
for step in range(2500):
    calls = 0
    x = torch.randn(64, 16)
    if KIND == "anomaly" and step % 2:
        with torch.autograd.detect_anomaly():
            loss = model(x).square().mean()
            on = torch._C.is_anomaly_enabled()
            optimizer.zero_grad()
            loss.backward()
    else:
        loss = model(x).square().mean()
        on = torch._C.is_anomaly_enabled()
        optimizer.zero_grad()
        loss.backward()
    optimizer.step()
    seen.append(on if KIND == "anomaly" else calls)
print(json.dumps(seen))
