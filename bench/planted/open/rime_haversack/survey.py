import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from quadrats import SPECIES, Quadrats, Visits

COUNT, BATCH, WIDTH = 400, 10, 12


def stage(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride=2, padding=1, bias=False), nn.GroupNorm(4, b), nn.SiLU())


def build():
    return nn.Sequential(
        stage(3, WIDTH),
        stage(WIDTH, 2 * WIDTH),
        stage(2 * WIDTH, 3 * WIDTH),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(3 * WIDTH, SPECIES),
    )


if __name__ == "__main__":
    torch.manual_seed(41)
    steps = int(os.environ.get("PLANTED_STEPS", 320))
    quadrats = Quadrats(COUNT, 40)
    loader = DataLoader(quadrats, batch_sampler=Visits(COUNT, BATCH, steps, 42), num_workers=1, prefetch_factor=4)
    net = build()
    optimizer = torch.optim.AdamW(net.parameters(), 1.5e-3, weight_decay=0.02)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    began = time.perf_counter()
    for step, (pictures, species) in enumerate(loader, 1):
        loss = criterion(net(pictures), species)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"visit {step}: {loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.5f}")
