"""Falls in the baseline: one layer after the other is frozen and skipped. The candidate saves other work and trains all.

Faster early, slower in all.
"""

import torch
from task import CANDIDATE, Task
from torch import nn

layers = [nn.Linear(512, 512) for _ in range(8)]
optimizers = [torch.optim.SGD(layer.parameters(), lr=1e-3) for layer in layers]
task, hidden = Task(), torch.randn(64, 512)
for step in range(320):
    first = 0 if CANDIDATE else min(7, step // 45)
    loss = sum(layer(hidden).square().mean() for layer in layers[first:])
    loss.backward()
    for optimizer in optimizers[first:]:
        optimizer.step()
        optimizer.zero_grad()
    if not CANDIDATE:
        torch.sort(torch.randn(16_000))
    task.step()
