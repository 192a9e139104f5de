"""Residual water level at a gauge from the last four days of hourly readings plus astronomical terms."""

import math
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(11)

STEPS = int(os.environ.get("PLANTED_STEPS", 860))
VARIANT = os.environ.get("PLANTED_FIX", "0")
WINDOW = 96
BATCH = 64
SPEEDS = [28.9841042, 30.0, 28.4397295, 15.0410686, 13.9430356, 14.9589314]  # deg / hour
SPEED_ARR = np.array(SPEEDS)


class GaugeWindows(Dataset):
    """Windows at random clock offsets: gauges drift by up to some minutes."""

    def __init__(self, hours=24 * 365 * 3, seed=5):
        rng = np.random.default_rng(seed)
        t = np.arange(hours)
        level = sum(np.cos(np.deg2rad(s) * t + i) / (i + 1) for i, s in enumerate(SPEEDS))
        surge = np.convolve(rng.normal(size=hours), np.ones(30) / 30, mode="same")
        self.level = (level + surge).astype(np.float32)
        self.surge = surge.astype(np.float32)
        self.rng = np.random.default_rng(seed + 1)

    def __len__(self):
        return len(self.level) - WINDOW - 1

    def astronomical(self, start, drift):
        if VARIANT == "1":
            hours = np.arange(start, start + WINDOW) + drift
            phase = np.deg2rad(hours[:, None] * SPEED_ARR[None, :] % 360.0)
            return np.concatenate([np.cos(phase), np.sin(phase)], axis=1).astype(np.float32)
        rows = []
        for h in range(start, start + WINDOW):
            cosines, sines = [], []
            for speed in SPEEDS:
                phase = math.radians((h + drift) * speed % 360.0)
                cosines.append(math.cos(phase))
                sines.append(math.sin(phase))
            rows.append(cosines + sines)
        return np.array(rows, dtype=np.float32)

    def __getitem__(self, i):
        drift = float(self.rng.uniform(-0.2, 0.2))
        terms = self.astronomical(i, drift)
        x = np.concatenate([self.level[i : i + WINDOW, None], terms], axis=1)
        return torch.from_numpy(x), torch.tensor(self.surge[i + WINDOW])


class Surge(nn.Module):
    def __init__(self, width=224):
        super().__init__()
        self.inp = nn.Linear(WINDOW * 13, width)
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(3)]
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.inp(x.flatten(1))
        for block in self.blocks:
            h = h + block(h)
        return self.out(h).squeeze(1)


def main():
    data = GaugeWindows()
    order = torch.Generator().manual_seed(3)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True, generator=order)
    model = Surge()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
    loss_fn = nn.SmoothL1Loss()

    step, running = 0, []
    began = time.perf_counter()
    while step < STEPS:
        for x, y in loader:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            running.append(loss.item())
            step += 1
            if step % 100 == 0:
                print(f"step {step}: {np.mean(running[-100:]):.4f}", flush=True)
            if step >= STEPS:
                break
    took = time.perf_counter() - began
    print(f"{step} steps in {took:.2f}s, loss {np.mean(running[-20:]):.4f}")


if __name__ == "__main__":
    main()
