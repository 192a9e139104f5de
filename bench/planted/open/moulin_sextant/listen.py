"""Tells crevasses from moulins, calving and stick-slip by a mixer over patches of the wave."""

import argparse
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from geophones import CLIP, field_season
from icequakes import Icequakes, Season

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--patch", type=int, default=32)
parser.add_argument("--width", type=int, default=160)
parser.add_argument("--depth", type=int, default=3)
parser.add_argument("--lr", type=float, default=5e-4)
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 320)))


class Mix(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.along = nn.Sequential(nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches))
        self.across = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.along(self.one(x).mT).mT
        return x + self.across(self.two(x))


class Listener(nn.Module):
    def __init__(self, patch, width, depth):
        super().__init__()
        self.patch = patch
        self.enter = nn.Linear(patch, width)
        self.mixes = nn.Sequential(*[Mix(CLIP // patch, width) for _ in range(depth)])
        self.leave = nn.Linear(width, 4)

    def forward(self, wave):
        return self.leave(self.mixes(self.enter(wave.unflatten(1, (-1, self.patch)))).mean(1))


def main(args):
    torch.manual_seed(77)
    with tempfile.TemporaryDirectory(prefix="glacier") as folder:
        field_season(folder, events=1200, nights=3, seed=8)
        quakes = Icequakes(folder)
        loader = DataLoader(quakes, args.batch, sampler=Season(len(quakes), args.batch * args.steps, 4), num_workers=args.workers)
        net = Listener(args.patch, args.width, args.depth)
        optimizer = torch.optim.AdamW(net.parameters(), args.lr, weight_decay=0.02)
        seen = 0.0
        began = time.perf_counter()
        for step, (wave, kind) in enumerate(loader, 1):
            loss = nn.functional.cross_entropy(net(wave), kind, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += 0.02 * (loss.item() - seen)
            if step % 80 == 0:
                print(f"step {step}: about {seen:.4f}", flush=True)
        print(f"{args.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(parser.parse_args())
