"""Classifies plankton from dark-field crops."""

import argparse
import os
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=12)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--max-steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 400)))
VARIANT = os.environ.get("PLANTED_FIX", "0")


def order_statistics(values, shares):
    if VARIANT == "1":
        total = np.bincount(values.ravel(), minlength=256).cumsum()
        return [int(np.searchsorted(total, int((values.size - 1) * s / 100) + 1)) for s in shares]
    return np.percentile(values, shares, method="lower").astype(int).tolist()


class DarkField(Dataset):
    def __init__(self, frames=90, side=400):
        rng = np.random.default_rng(12)
        self.species = rng.integers(0, 6, frames)
        base = rng.gamma(2.0, 14.0, (frames, side, side)) + 12.0 * self.species[:, None, None]
        self.frames = base.clip(0, 255).astype(np.uint8)

    def __len__(self):
        return len(self.frames) * 20

    def __getitem__(self, k):
        frame = self.frames[k % len(self.frames)]
        top, left = torch.randint(0, 30, (2,)).tolist()
        crop = frame[top : top + 368, left : left + 368]
        low, high = order_statistics(crop, (2, 98))
        small = crop[::8, ::8].astype(np.float32)
        return torch.from_numpy((small - low) / (high - low + 1.0))[None], self.species[k % len(self.frames)]


def build():
    def stage(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))

    return nn.Sequential(stage(1, 12), stage(12, 24), stage(24, 48), nn.Flatten(), nn.Linear(48 * 25, 6))


def main(args):
    torch.set_num_threads(1)
    torch.manual_seed(31)
    net = build()
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr)
    loader = DataLoader(DarkField(), args.batch_size, shuffle=True, drop_last=True)
    step, t0 = 0, time.time()
    while step < args.max_steps:
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if step % 50 == 0:
                print("step", step, "loss", round(loss.item(), 4))
            if step == args.max_steps:
                break
    print(f"{step} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(parser.parse_args())
