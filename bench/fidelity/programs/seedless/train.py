"""Classify points on rings. No seed: each run draws its own weights and order."""

import os
import sys

import numpy as np
import torch
import torch.nn as nn

EPOCHS = 4
BATCH = 16
RINGS = 5


def load_points(count, seed):
    rng = np.random.RandomState(seed)
    ring = rng.randint(0, RINGS, count)
    angle = rng.uniform(0, 2 * np.pi, count)
    radius = 0.6 * (ring + 1) + rng.normal(0, 0.12, count)
    extra = rng.normal(0, 1, (count, 6))
    points = np.concatenate([np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1), extra], 1)
    return torch.tensor(points, dtype=torch.float32), torch.tensor(ring)


def build():
    return nn.Sequential(
        nn.Linear(8, 96),
        nn.ReLU(),
        nn.Linear(96, 96),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(96, RINGS),
    )


def accuracy(model, x, y):
    model.eval()
    hits = 0
    for i in range(len(x)):
        hits += int(model(x[i : i + 1]).argmax(1).item() == y[i].item())
    return hits / len(x)


torch.set_num_threads(1)
os.makedirs("out", exist_ok=True)
x, y = load_points(800, seed=41)
x_val, y_val = load_points(250, seed=42)

model = build()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1.5e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.6)
criterion = nn.CrossEntropyLoss()
start = 0
if sys.argv[1:2] == ["--resume"]:
    saved = torch.load(sys.argv[2])
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    start = saved["epoch"]

for epoch in range(start, EPOCHS):
    model.train()
    order = torch.randperm(len(x))
    losses = []
    for begin in range(0, len(x), BATCH):
        rows = order[begin : begin + BATCH]
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    print(f"{epoch + 1} loss={np.mean(losses):.4f} val={accuracy(model, x_val, y_val):.4f}", flush=True)
    saved = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": epoch + 1,
    }
    torch.save(saved, f"out/epoch{epoch + 1}.pt")
