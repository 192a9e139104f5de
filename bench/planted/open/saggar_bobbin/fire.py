import os
import time

import torch

from cone import ConeNet
from firings import season
from signum import Signum

STEPS = int(os.environ.get("PLANTED_STEPS", 320))
BATCH = 32

torch.manual_seed(1222)
logs, bars = season(3000, seed=5)
net = ConeNet()
opt = Signum(net.parameters(), lr=1e-4)

began = time.perf_counter()
order = torch.randperm(len(logs))
at = 0
for step in range(1, STEPS + 1):
    if at + BATCH > len(order):
        order, at = torch.randperm(len(logs)), 0
    rows = order[at : at + BATCH]
    at += BATCH
    for group in opt.param_groups:
        group["lr"] = 1e-4 * min(1.0, step / 40)
    loss = (net(logs[rows]) - bars[rows]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(f"firing {step}: bars off by {loss.item() ** 0.5 * 0.04:.4f}", flush=True)
print(f"{STEPS} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.5f}")
