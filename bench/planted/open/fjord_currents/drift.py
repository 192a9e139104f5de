import os
import time

import torch
from torch import nn

from belief import AdaBelief
from buoys import Receiver, readings


class Deep(nn.Module):
    """Narrow and very deep, as the paper has it."""

    def __init__(self, width=24, depth=60):
        super().__init__()
        self.inp, self.out = nn.Linear(4, width), nn.Linear(width, 2)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        h = self.inp(x)
        for norm, layer in zip(self.norms, self.layers):
            h = h + 0.2 * torch.tanh(layer(norm(h)))
        return self.out(h)


torch.manual_seed(60)
torch.set_num_threads(1)
steps = int(os.environ.get("PLANTED_STEPS", 700))
receiver = Receiver(readings(12000), batch=256)
net = Deep()
optimizer = AdaBelief(net.parameters(), lr=2e-3)
mean, start = None, time.perf_counter()
for step in range(1, steps + 1):
    given, found = receiver.get_batch()
    loss = nn.functional.mse_loss(net(given), found)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
    if step % 50 == 0:
        print(f"step {step:4d}  loss {mean:.5f}")
print(f"{steps} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")
