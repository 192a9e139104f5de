import json
import os
import time
from pathlib import Path

import torch

from ears import Ear
from pairing import lead
from strikes import Carillon

cfg = json.loads((Path(__file__).parent / "tower.json").read_text())
torch.manual_seed(cfg["seed"])
carillon = Carillon(cfg)
ears = [Ear(cfg), Ear(cfg)]
with torch.no_grad():
    for ear in ears:
        ear(torch.zeros(1, cfg["samples"]))
weights = [w for ear in ears for w in ear.parameters()]
opt = torch.optim.SGD(weights, lr=cfg["lr"] * 50, momentum=0.9)
plan = torch.optim.lr_scheduler.LambdaLR(opt, lambda n: min(1.0, (n + 1) / 40))

steps = int(os.environ.get("PLANTED_STEPS", 400))
smooth = None
began = time.perf_counter()
for step in range(steps):
    sounds = carillon.pairs()
    opt.zero_grad(set_to_none=True)
    loss = lead(ears, sounds, cfg["warmth"])
    torch.nn.utils.clip_grad_norm_(weights, 2.0)
    opt.step()
    plan.step()
    smooth = loss if smooth is None else smooth.lerp(loss, 0.05)
    if step % 50 == 49:
        print(f"strike {step + 1}: contrast {smooth.item():.4f}", flush=True)
took = time.perf_counter() - began
print(f"{steps} steps in {took:.3f} s, loss {smooth.item():.6f}")
