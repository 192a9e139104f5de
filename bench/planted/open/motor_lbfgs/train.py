import os
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
FAST = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 150))

load = torch.rand(700, 6)
torque = (load[:, :1] * load[:, 1:2]).sin() + 0.3 * load[:, 2:3].square()
model = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=4, history_size=8)
torch.set_printoptions(threshold=4000)


def show(loss):
    """Loss and gradients of every evaluation."""
    if FAST:
        return
    print("loss", loss)
    for name, p in model.named_parameters():
        print(name, p.grad[:24] if p.dim() > 1 else p.grad)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(load), torque)
    loss.backward()
    show(loss)
    return loss


start = time.time()
for _step in range(STEPS):
    loss = optimizer.step(closure)
print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
