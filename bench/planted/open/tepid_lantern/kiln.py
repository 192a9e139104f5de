"""Simulated firings: stoking and damper drive eight thermocouples from the firebox to the flue."""

import numpy as np
import torch
from torch import nn

PROBES = ("firebox", "bagwall", "front_low", "front_high", "middle", "back_low", "back_high", "flue")


def fire(settings):
    rng = np.random.default_rng(settings.seed)
    n, t, p = settings.firings, settings.minutes, len(PROBES)
    stoke = (rng.random((n, t)) < 0.2) * rng.uniform(0.5, 1.5, (n, t))
    damper = np.clip(np.cumsum(rng.normal(0, 0.02, (n, t)), 1) + 0.5, 0.1, 1)
    temps = np.zeros((n, t, p), np.float32)
    heat, now = np.zeros(n), np.full((n, p), 0.02)
    for minute in range(t):
        heat = 0.94 * heat + stoke[:, minute]
        upstream = np.concatenate([0.35 * heat[:, None], now[:, :-1]], 1)
        draw = 0.12 * damper[:, minute, None]
        now = now + draw * (upstream - now) - 0.004 * now + rng.normal(0, 0.003, (n, p))
        temps[:, minute] = now
    seen = np.concatenate([temps, stoke[..., None], damper[..., None]], -1).astype(np.float32)
    return torch.from_numpy(seen).transpose(1, 2).contiguous()


class Windows:
    def __init__(self, seen, settings):
        self.seen, self.s = seen, settings
        self.dice = torch.Generator().manual_seed(settings.seed)
        self.offsets = torch.arange(settings.past)

    def draw(self):
        s = self.s
        which = torch.randint(s.firings, (s.batch,), generator=self.dice)
        start = torch.randint(s.minutes - s.past - s.ahead, (s.batch,), generator=self.dice)
        at = start[:, None] + self.offsets
        past = self.seen[which[:, None], :, at].transpose(1, 2)
        goal = self.seen[which, : len(PROBES), start + s.past + s.ahead - 1]
        return past.contiguous(), goal


class Block(nn.Module):
    def __init__(self, width, gap):
        super().__init__()
        self.wide = nn.Conv1d(width, 2 * width, 3, padding=gap, dilation=gap)
        self.back = nn.Conv1d(width, width, 1)

    def forward(self, x):
        a, b = self.wide(x).chunk(2, 1)
        return x + self.back(torch.tanh(a) * torch.sigmoid(b))


class Forecast(nn.Module):
    def __init__(self, settings):
        super().__init__()
        w = settings.width
        self.enter = nn.Conv1d(len(PROBES) + 2, w, 1)
        self.blocks = nn.Sequential(*(Block(w, 2**i) for i in range(settings.depth)))
        self.leave = nn.Linear(w, len(PROBES))

    def forward(self, past):
        h = self.blocks(self.enter(past))
        return past[:, : len(PROBES), -1] + self.leave(h[..., -8:].mean(-1))
