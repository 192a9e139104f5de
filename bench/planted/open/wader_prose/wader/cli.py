import argparse
import os
import time

import torch

from .gpt import Gpt
from .text import Letters, prose


def parse():
    p = argparse.ArgumentParser("wader")
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 180)))
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--context", type=int, default=128)
    p.add_argument("--width", type=int, default=160)
    p.add_argument("--layers", type=int, default=3)
    p.add_argument("--heads", type=int, default=5)
    p.add_argument("--lr", type=float, default=6e-4)
    p.add_argument("--clip", type=float, default=1.0)
    return p.parse_args()


def main():
    a = parse()
    torch.manual_seed(5)
    letters = Letters(prose(6000, seed=6))
    net = Gpt(letters.size, a.context, a.width, a.layers, a.heads)
    opt = torch.optim.AdamW(net.parameters(), lr=a.lr, fused=True)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, a.lr, total_steps=a.steps + 1)
    g = torch.Generator().manual_seed(7)
    t0 = time.time()
    for step in range(a.steps):
        loss = net(*letters.windows(a.batch, a.context, g))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), a.clip, foreach=True)
        opt.step()
        plan.step()
        if step % 55 == 0:
            print(f"{step} {loss.item():.4f}")
    print(f"{a.steps} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")
