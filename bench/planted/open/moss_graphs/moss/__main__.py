import os
import time

import torch
from torch.utils.data import DataLoader, RandomSampler

from .batch import disjoint_union
from .molecules import library
from .registry import LOSSES, MODELS

CONFIG = {
    "model": {"type": "mpnn", "width": 32, "rounds": 2},
    "loss": {"type": "huber", "delta": 0.5},
    "data": {"count": 1500, "seed": 4},
    "batch_size": 32,
    "steps": 400,
    "lr": 2e-3,
}


def run(cfg):
    torch.manual_seed(6)
    steps = int(os.environ.get("PLANTED_STEPS", cfg["steps"]))
    data = library(**cfg["data"])
    chosen = RandomSampler(data, replacement=True, num_samples=steps * cfg["batch_size"], generator=torch.Generator().manual_seed(1))
    loader = DataLoader(data, cfg["batch_size"], sampler=chosen, collate_fn=disjoint_union)
    model, criterion = MODELS.build(cfg["model"]), LOSSES.build(cfg["loss"])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    start = time.perf_counter()
    for i, batch in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(batch), batch.energy)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"[{i}] {loss.item():.4f}")
    print(f"{steps} steps in {time.perf_counter() - start:.2f}s, loss {loss.item():.6f}")


run(CONFIG)
