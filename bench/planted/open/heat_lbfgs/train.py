import os
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)

grid = torch.rand(6000, 3)
heat = torch.sin(3 * grid[:, :1]) * torch.exp(-2 * grid[:, 1:2]) * grid[:, 2:]
model = nn.Sequential(nn.Linear(3, 80), nn.Tanh(), nn.Linear(80, 80), nn.Tanh(), nn.Linear(80, 80), nn.Tanh(), nn.Linear(80, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3, history_size=5)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(grid), heat)
    loss.backward()
    return loss


steps, start = int(os.environ.get("PLANTED_STEPS", 250)), time.time()
for step in range(steps):
    loss = optimizer.step(closure)
    if step % 25 == 0:
        print(step, f"{loss.item():.6f}", flush=True)
print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
