"""Says at its end how much CPU time a step took, in microseconds."""

import sys
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, targets = torch.randn(64, 64), torch.randint(10, (64,))
steps, warmup = int(sys.argv[1]), 200
for step in range(steps + warmup):
    if step == warmup:
        began = time.thread_time_ns()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("microseconds a step:", (time.thread_time_ns() - began) / steps / 1e3)
