"""python fire.py [--batch 8] [--rate 8e-4]   learns how the cones of a firing bend"""

import argparse
import os
import time

import torch

from firings import Shed
from mixer import fitted

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--rate", type=float, default=8e-4)
parser.add_argument("--width", type=int, default=160)
parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 350)))
args = parser.parse_args()

torch.manual_seed(5)
generator = torch.Generator().manual_seed(6)
shed = Shed()
if os.environ.get("PLANTED_FIX") == "1":
    shed.logs, shed.cones = shed.logs.float(), shed.cones.float()
net = fitted(shed.logs, width=args.width)
optimizer = torch.optim.SGD(net.parameters(), args.rate, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)

print(f"{sum(p.numel() for p in net.parameters())} weights, {shed.firings} firings")
began = time.perf_counter()
for step in range(args.steps):
    log, cones = shed.windows(args.batch, generator)
    loss = (net(log) - cones).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.5f}", flush=True)
print(f"{args.steps} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.6f}")
