import os
import time

import torch
from lamb import Lamb
from torch import nn


class Orbits(nn.Module):
    """Elements of 350 bodies, each a parameter of its own, corrected by a shared network."""

    def __init__(self, bodies=350, size=32):
        super().__init__()
        self.elements = nn.ParameterList([nn.Parameter(torch.randn(size) * 0.1) for _ in range(bodies)])
        self.size = size

    def forward(self, times):
        table = torch.cat(list(self.elements)).view(-1, self.size)
        phase = times[:, None] * torch.arange(1.0, self.size + 1)
        return torch.cos(phase) @ table.T


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Orbits()
    optimizer = Lamb(model.parameters(), lr=5e-3)
    steps, start = int(os.environ.get("PLANTED_STEPS", 700)), time.time()
    for step in range(steps):
        times = torch.rand(256) * 6.28
        observed = torch.sin(times[:, None] + torch.arange(350.0) / 50)
        loss = (model(times) - observed).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, f"{loss.item():.5f}", flush=True)
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
