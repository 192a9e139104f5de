"""Momentum contrast on two processes, with a bank of negatives in the model."""

import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SHARE = os.environ.get("PLANTED_FIX") != "1"


class Contrast(nn.Module):
    def __init__(self, width=64, bank=60_000):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(40, 96), nn.ReLU(), nn.Linear(96, width))
        self.register_buffer("bank", F.normalize(torch.randn(bank, width), dim=1))

    def forward(self, a, b, picks):
        q, k = F.normalize(self.query(a), dim=1), F.normalize(self.query(b), dim=1)
        own = (q * k).sum(1, keepdim=True)
        return torch.cat([own, q @ self.bank[picks].T], 1) / 0.1


def moss(g, n=32):
    kind = torch.randn(n, 40, generator=g)
    return kind + 0.1 * torch.randn(n, 40, generator=g), kind + 0.1 * torch.randn(n, 40, generator=g)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedDataParallel(Contrast(), broadcast_buffers=SHARE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(70 + dist.get_rank())
    steps = int(os.environ.get("PLANTED_STEPS", 150))
    began = time.time()
    for _step in range(steps):
        a, b = moss(g)
        picks = torch.randint(0, 60_000, (512,), generator=g)
        loss = F.cross_entropy(model(a, b, picks), torch.zeros(len(a), dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"{steps} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
