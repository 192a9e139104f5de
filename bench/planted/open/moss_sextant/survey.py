import argparse
import os
import time

import torch
from torch import nn

from quadrats import SORTS, faces
from thallus import Thallus

p = argparse.ArgumentParser(description="lichen cover from photographs of quadrats")
p.add_argument("--size", type=int, default=128)
p.add_argument("--faces", type=int, default=96)
p.add_argument("--batch", type=int, default=8)
p.add_argument("--width", type=int, default=64)
p.add_argument("--lobes", type=int, default=5)
p.add_argument("--rate", type=float, default=0.02)
p.add_argument("--seed", type=int, default=5)
p.add_argument("--show", type=int, default=40)
a = p.parse_args()

torch.manual_seed(a.seed)
pictures, labels = faces(a.faces, a.size, a.seed)
cells = labels[:, 2::4, 2::4].flatten(1)  # the network answers for cells of 4 x 4 pixels
net = Thallus(SORTS, a.width, a.lobes).to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), a.rate, momentum=0.9, nesterov=True)
weights = torch.tensor([0.6] + [1.1] * (SORTS - 1))
steps = int(os.environ.get("PLANTED_STEPS", 400))
began = time.perf_counter()
for step in range(1, steps + 1):
    if (step - 1) * a.batch % a.faces == 0:
        order = torch.randperm(a.faces)
    at = (step - 1) * a.batch % a.faces
    pick = order[at : at + a.batch]
    x = pictures[pick].contiguous(memory_format=torch.channels_last)
    loss = nn.functional.cross_entropy(net(x).flatten(0, 1), cells[pick].flatten(), weight=weights)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % a.show == 0:
        print("step", step, "loss", round(loss.item(), 4), flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")
