"""Direction of the food source from the track of a waggle dance."""

import math
import os
import time

import torch
from torch import nn

torch.set_num_threads(1)

FRAMES = 448
DIM = 64


class Look(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.before, self.after = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        self.options = {"need_weights": False} if os.environ.get("PLANTED_FIX") == "1" else {}

    def forward(self, x):
        h = self.before(x)
        seen, _ = self.attention(h, h, h, **self.options)
        x = x + seen
        return x + self.mlp(self.after(x))


class Dance(nn.Module):
    def __init__(self, depth=2, heads=8):
        super().__init__()
        self.embed = nn.Conv1d(3, DIM, 5, padding=2)
        self.time = nn.Parameter(torch.randn(FRAMES, DIM) * 0.02)
        self.layers = nn.Sequential(*[Look(DIM, heads) for _ in range(depth)])
        self.where = nn.Linear(DIM, 2)

    def forward(self, track):
        h = self.embed(track).transpose(1, 2) + self.time
        return self.where(self.layers(h).mean(1))


def dances(n, generator):
    angle = torch.rand(n, generator=generator) * 2 * math.pi
    t = torch.arange(FRAMES) / 25
    run = torch.stack([torch.cos(angle)[:, None] * t, torch.sin(angle)[:, None] * t, torch.sin(13 * 2 * math.pi * t).expand(n, -1)], 1)
    run = run + 0.3 * torch.randn(n, 3, FRAMES, generator=generator)
    return run / 4, torch.stack([torch.cos(angle), torch.sin(angle)], 1)


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(44)
    model = Dance()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    wanted = int(os.environ.get("PLANTED_STEPS", 110))
    moving = None
    begun = time.time()
    for n in range(1, wanted + 1):
        track, where = dances(4, generator)
        error = (model(track) - where).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        scheduler.step()
        moving = error.item() if moving is None else 0.9 * moving + 0.1 * error.item()
        if n % 25 == 0:
            print(f"{n:5d} {moving:.4f}", flush=True)
    print(f"{wanted} steps in {time.time() - begun:.2f}s, loss {moving:.4f}")


if __name__ == "__main__":
    main()
