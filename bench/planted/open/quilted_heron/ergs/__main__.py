"""python -m ergs [--width 24] [--side 64] ..."""

import argparse
import os
import time

import torch
from torch import nn

from .layers import Down, PixelNorm, Ripple, Up
from .scenes import Scenes


class Filler(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), PixelNorm(width))
        self.fine = nn.Sequential(*[Ripple(width) for _ in range(depth)])
        self.down = Down(width, 2 * width)
        self.deep = nn.Sequential(*[Ripple(2 * width) for _ in range(depth)])
        self.up = Up(2 * width, width)
        self.out = nn.Sequential(Ripple(width), nn.Conv2d(width, 1, 1))

    def forward(self, seen):
        fine = self.fine(self.stem(seen))
        return self.out(self.up(self.deep(self.down(fine)), fine))


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--side", type=int, default=48)
    parser.add_argument("--scenes", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 400)))
    return parser.parse_args()


def main(opt):
    torch.manual_seed(opt.seed)
    torch.set_num_threads(1)
    scenes, model = Scenes(opt.scenes, opt.side, opt.seed), Filler(opt.width, opt.depth)
    optimizer = torch.optim.AdamW(model.parameters(), opt.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, opt.rate, total_steps=opt.steps + 1)
    began = time.perf_counter()
    for step in range(1, opt.steps + 1):
        seen, height = scenes.draw(opt.batch)
        loss = nn.functional.l1_loss(model(seen), height)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"[{step}/{opt.steps}] l1 {loss.item():.4f}", flush=True)
    print(f"{opt.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main(options())
