"""Trains an emulator of the dune model."""

import os
import time

import torch
from torch.utils.data import BatchSampler, RandomSampler

from field import ripples
from stages import Ripples


def epochs(count, batch, generator):
    while True:
        yield from BatchSampler(RandomSampler(range(count), generator=generator), batch, drop_last=True)


def main(steps=int(os.environ.get("PLANTED_STEPS", 160)), batch=8, lr=2e-3):
    torch.manual_seed(14)
    torch.set_num_threads(1)
    before, after = ripples(512)
    model = Ripples().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=max(steps, 10))
    picks = epochs(len(before), batch, torch.Generator().manual_seed(14))
    began = time.perf_counter()
    for step in range(1, steps + 1):
        rows = next(picks)
        x, y = before[rows], after[rows]
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            print(f"step {step:4d} mse {loss.item():.5f} lr {schedule.get_last_lr()[0]:.1e}")
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
