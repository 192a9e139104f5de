"""Tells the genus of pressed plants from their sheets."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

import torch
from torch import nn
from torch.utils.data import DataLoader

from depot import GENERA, SHEETS, SIDE
from sheets import Sheets


class PatchMixer(nn.Module):
    def __init__(self, patch=6, width=96, blocks=2):
        super().__init__()
        self.patch, places = patch, (SIDE // patch) ** 2
        self.stem = nn.Linear(patch * patch, width)
        self.across = nn.ModuleList(
            nn.Sequential(nn.Linear(places, 2 * places), nn.GELU(), nn.Linear(2 * places, places)) for _ in range(blocks)
        )
        self.within = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(blocks)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * blocks))
        self.head = nn.Linear(width, GENERA)

    def forward(self, leaves):
        x = leaves.float().div_(127.5).sub_(1)
        x = x.unfold(1, self.patch, self.patch).unfold(2, self.patch, self.patch).flatten(3).flatten(1, 2)
        x = self.stem(x)
        for number, (across, within) in enumerate(zip(self.across, self.within)):
            x = x + across(self.norms[2 * number](x).transpose(1, 2)).transpose(1, 2)
            x = x + within(self.norms[2 * number + 1](x))
        return self.head(x.mean(1))


@contextmanager
def open_depot(seed):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vault")
        depot = subprocess.Popen([sys.executable, "depot.py", path, str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            depot.stdout.readline()
            yield path
        finally:
            depot.stdin.close()
            depot.wait()


def train(args, path):
    data = Sheets(path, list(range(SHEETS)), args.seed)
    order = torch.Generator().manual_seed(args.seed)
    loader = DataLoader(
        data, args.batch, shuffle=True, drop_last=True, num_workers=args.workers, persistent_workers=args.workers > 0, generator=order
    )
    model = PatchMixer()
    optimizer = torch.optim.AdamW(model.parameters(), args.rate, weight_decay=0.05)
    step, began = 0, time.perf_counter()
    while step < args.steps:
        for leaves, genus in loader:
            loss = nn.functional.cross_entropy(model(leaves), genus, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if step % 40 == 0:
                print(f"{step:5d} {loss.item():.4f}", flush=True)
            if step == args.steps:
                break
    print(f"{step} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 300)))
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    with open_depot(args.seed) as path:
        train(args, path)
