"""Amortised magnetisation of small spin lattices; the energy model is compiled."""

import os
import time

import torch
import torch._dynamo
from torch import nn

torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 4096
torch._dynamo.config.accumulated_recompile_limit = 100000
PER_SWEEP = 5  # batches at one temperature


class EnergyModel(nn.Module):
    def __init__(self, sites=256, width=512):
        super().__init__()
        self.a = nn.Linear(sites, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        self.sweeps = 0
        self.register_buffer("sweep", torch.zeros(()))

    def cool(self):
        self.sweeps += 1
        self.sweep += 1.0

    def schedule(self):
        if os.environ.get("PLANTED_FIX") == "1":
            return 1.0 / (1.0 + 0.01 * self.sweep)
        return 1.0 / (1.0 + 0.01 * self.sweeps)

    def forward(self, spins):
        beta = self.schedule()
        h = torch.tanh(self.a(spins) * (1.0 + beta))
        h = torch.tanh(self.b(h))
        h = h + torch.tanh(self.c(h)) * beta
        return self.out(h).squeeze(1)


def lattices(n, g):
    field = torch.randn(n, 1, generator=g)
    s = torch.sign(torch.randn(n, 256, generator=g) + 0.5 * field)
    return s, s.mean(1)


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    model = EnergyModel()
    compiled = torch.compile(model, backend="aot_eager")
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    n = int(os.environ.get("PLANTED_STEPS", 280))
    for _ in range(3):  # warm up the compiler
        s, m = lattices(512, g)
        (compiled(s) - m).pow(2).mean().backward()
        opt.zero_grad()
    ema, t = 0.0, time.time()
    for i in range(n):
        if i % PER_SWEEP == 0:
            model.cool()
        s, m = lattices(512, g)
        loss = (compiled(s) - m).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema = loss.item() if i == 0 else 0.9 * ema + 0.1 * loss.item()
        if i % 10 == 9:
            print(f"{i + 1} {ema:.5f}", flush=True)
    print(f"{n} steps in {time.time() - t:.2f}s, loss {ema:.5f}")


if __name__ == "__main__":
    main()
