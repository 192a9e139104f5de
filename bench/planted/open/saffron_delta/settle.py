"""Learn where a delta grows."""

import os
import time
from dataclasses import dataclass, field

import torch
from delta.maps import deltas
from delta.memory import slim
from delta.nets import Delta
from lightning.fabric import Fabric
from torch.utils.data import DataLoader


@dataclass
class Job:
    fields: int = 4
    side: int = 64
    batch: int = 6
    count: int = 360
    rate: float = 1e-3
    steps: int = int(os.environ.get("PLANTED_STEPS", 560))
    net: dict = field(default_factory=lambda: {"patch": 8, "width": 96, "branches": 2, "reaches": 3})


def passes(loader: DataLoader, steps: int):
    done = 0
    while True:
        for batch in loader:
            if done == steps:
                return
            done += 1
            yield done, batch


def main(job: Job) -> None:
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(23, verbose=False)
    fabric.launch()
    net = slim(Delta(job.fields, job.side, **job.net))
    net, optimizer = fabric.setup(net, torch.optim.AdamW(net.parameters(), job.rate, fused=True))
    loader = fabric.setup_dataloaders(DataLoader(deltas(job.count, job.fields, job.side, 6), job.batch, shuffle=True))
    began = time.perf_counter()
    for step, (maps, settled) in passes(loader, job.steps):
        loss = torch.nn.functional.mse_loss(net(maps), settled)
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % 60 == 0:
            fabric.print(f"epoch {step * job.batch / job.count:.1f}: {loss.item():.5f}")
    fabric.print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(Job())
