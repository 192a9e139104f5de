import os
import time

import torch
from engine import evaluate, train_step
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
FAST = os.environ.get("PLANTED_FIX") == "1"
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 500))
EVAL_INTERVAL = 400 if FAST else 10


def roads(n, seed):
    g = torch.Generator().manual_seed(seed)
    images = torch.rand(n, 3, 32, 32, generator=g)
    slope = torch.randn(n, 1, 1, generator=g)
    y, x = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
    masks = ((y - slope * x).abs() < 0.2).float()[:, None]
    return TensorDataset(images + 0.5 * masks, masks)


model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.Conv2d(32, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.Conv2d(32, 1, 1),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
train_loader = DataLoader(roads(640, 1), batch_size=8, shuffle=True)
val_loader = DataLoader(roads(320, 2))

step, t0, best = 0, time.time(), 0.0
while step < MAX_STEPS:
    for images, masks in train_loader:
        loss = train_step(model, optimizer, images, masks)
        step += 1
        if step % EVAL_INTERVAL == 0:
            best = max(best, evaluate(model, val_loader))
            print(f"step {step} loss {loss.item():.4f} best IoU {best:.3f}", flush=True)
        if step >= MAX_STEPS:
            break
print(f"{step} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")
