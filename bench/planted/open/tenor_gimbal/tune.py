import configparser
import os
import time

import torch
from torch import nn

from ear import Ear
from placing import place
from tower import Tower


def numbers(section):
    return {k: float(v) if "." in v else int(v) for k, v in section.items()}


ini = configparser.ConfigParser()
ini.read("carillon.ini")
fit, ring, shape = numbers(ini["fit"]), numbers(ini["tower"]), numbers(ini["ear"])
torch.manual_seed(fit["seed"])
torch.set_num_threads(1)

tower = Tower(bands=shape["bands"], seed=fit["seed"], **ring)
ear = place(Ear(bells=ring["bells"], **shape), ini["place"])
learning = [p for p in ear.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(learning, fit["lr"], fused=True)
rare = torch.full((ring["bells"],), 12.0)

steps = int(os.environ.get("PLANTED_STEPS", fit["steps"]))
began = time.perf_counter()
for n in range(1, steps + 1):
    heard, struck = tower.ring()
    loss = nn.functional.binary_cross_entropy_with_logits(ear(heard), struck, pos_weight=rare)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if n % fit["say"] == 0:
        print(f"{n:4d} {loss.item():.4f}", flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")
