"""Probabilistic load forecasting: 7 quantiles for the next 24 hours from the last 168."""

import os
import time

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(21)
rng = np.random.default_rng(21)

CONTEXT = 168
HORIZON = 24
QUANTILES = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
N_METERS = 60
HOURS = 24 * 120
BATCH = 64
LR = 1e-3
STEPS = int(os.environ.get("PLANTED_STEPS", 900))

# ---- data -----------------------------------------------------------------
t = np.arange(HOURS)
series = []
for _ in range(N_METERS):
    level = rng.uniform(0.5, 3.0)
    day = rng.uniform(0.2, 0.8) * np.sin(2 * np.pi * (t + rng.integers(24)) / 24)
    week = rng.uniform(0.05, 0.3) * np.sin(2 * np.pi * t / 168)
    noise = np.zeros(HOURS)
    shocks = rng.normal(0, 0.1, HOURS)
    for k in range(1, HOURS):
        noise[k] = 0.85 * noise[k - 1] + shocks[k]
    series.append(level * (1 + day + week) + noise)
series = np.stack(series).astype(np.float32)
series = (series - series.mean(1, keepdims=True)) / series.std(1, keepdims=True)
data = torch.from_numpy(series)
hour = torch.from_numpy(np.stack([np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24)]).astype(np.float32))


def sample_batch(gen):
    meter = torch.randint(N_METERS, (BATCH,), generator=gen)
    begin = torch.randint(HOURS - CONTEXT - HORIZON, (BATCH,), generator=gen)
    past = begin[:, None] + torch.arange(CONTEXT)
    future = begin[:, None] + CONTEXT + torch.arange(HORIZON)
    x = torch.stack([data[meter[:, None], past], hour[0][past], hour[1][past]], dim=1)
    y = data[meter[:, None], future]
    return x, y


# ---- model ----------------------------------------------------------------
class TCNBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.conv(self.pad(x)))


class Forecaster(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.inp = nn.Conv1d(3, channels, 1)
        self.blocks = nn.Sequential(*[TCNBlock(channels, 2**i) for i in range(3)])
        self.out = nn.Linear(channels, HORIZON * len(QUANTILES))

    def forward(self, x):
        h = self.blocks(self.inp(x))[:, :, -1]
        return self.out(h).view(-1, HORIZON, len(QUANTILES))


def quantile_loss(pred, target):
    if os.environ.get("PLANTED_FIX") == "1":
        q = torch.tensor(QUANTILES)
        err = target.unsqueeze(-1) - pred
        return torch.max(q * err, (q - 1) * err).mean()
    total = 0.0
    for h in range(HORIZON):
        for i, q in enumerate(QUANTILES):
            err = target[:, h] - pred[:, h, i]
            total = total + torch.max(q * err, (q - 1) * err).mean()
    return total / (HORIZON * len(QUANTILES))


# ---- training -------------------------------------------------------------
model = Forecaster()
opt = torch.optim.Adam(model.parameters(), lr=LR)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=200, gamma=0.5)
gen = torch.Generator().manual_seed(5)
running = None
t0 = time.perf_counter()
for step in range(1, STEPS + 1):
    x, y = sample_batch(gen)
    loss = quantile_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 50 == 0:
        value = loss.item()
        running = value if running is None else 0.7 * running + 0.3 * value
        print(f"{step:5d}  pinball {value:.4f}  smoothed {running:.4f}")
print(f"{STEPS} steps in {time.perf_counter() - t0:.2f} s, loss {loss.item():.6f}")
