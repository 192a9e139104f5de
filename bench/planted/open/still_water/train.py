"""Levels of lakes at rest; every process has the lakes of one region."""

import os
import time

import torch
import torch.distributed as dist
from equilibrium import Settle
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

REGIONS = {0: 0.30, 1: 0.985}


class Lakes(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.rain = nn.Linear(12, width)
        self.level = nn.Linear(width, 1)
        self.register_buffer("bed", torch.linalg.qr(torch.randn(width, width))[0])

    def forward(self, weather, damping):
        return self.level(Settle.apply(self.rain(weather) * 0.05, self.bed, damping)).squeeze(1)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(55)
    model = DDP(Lakes(), broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    g = torch.Generator().manual_seed(rank)
    steps = int(os.environ.get("PLANTED_STEPS", 150))
    began = time.time()
    for _ in range(steps):
        weather = torch.randn(192, 12, generator=g)
        damping = torch.full((192, 1), REGIONS[rank])
        loss = nn.functional.mse_loss(model(weather, damping), weather.mean(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"{steps} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
