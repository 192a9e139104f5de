"""torchrun --nproc_per_node 2 train_ranks.py"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn

from birds import days
from together import align, average_gradients, start

STEPS = int(os.environ.get("PLANTED_STEPS", 450))


def build():
    return nn.Sequential(
        nn.Linear(48, 512), nn.ReLU(), nn.Linear(512, 768), nn.ReLU(), nn.Linear(768, 512), nn.ReLU(), nn.Linear(512, 40), nn.Softplus()
    )


def main():
    rank, world = start()
    torch.set_num_threads(1)
    torch.manual_seed(100)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    x, y = days(8000)
    x, y = x[rank::world], y[rank::world]
    order = torch.Generator().manual_seed(rank)
    criterion = nn.PoissonNLLLoss(log_input=False)
    dist.barrier()
    began = time.perf_counter()
    for step in range(1, STEPS + 1):
        pick = torch.randint(len(x), (64,), generator=order)
        loss = criterion(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        align(step, model, optimizer)
        if rank == 0 and step % 25 == 0:
            print(f"step {step:4d}  poisson loss {loss.item():.4f}", flush=True)
    if rank == 0:
        print(f"{STEPS} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
