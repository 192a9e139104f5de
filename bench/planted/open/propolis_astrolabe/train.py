"""Learns one pattern dance for each foraging site, and an eye that brings filmed dances close to the right one."""

import os
import time

import torch
from torch import nn

from alignment import Alignment
from hive import dances
from settings import Settings


class Eye(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv1d(5, s.width, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(s.width, s.width, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(s.width, s.code, s.stride, stride=s.stride),
        )
        self.patterns = nn.Parameter(0.3 * torch.randn(s.sites, s.code, s.frames // s.stride))
        self.align = Alignment(s.gamma)

    def forward(self, films):
        course = self.look(films)
        cross = torch.einsum("bct,scu->bstu", course, self.patterns)
        gap = course.square().sum(1)[:, None, :, None] + self.patterns.square().sum(1)[None, :, None, :] - 2 * cross
        return self.align(gap.flatten(0, 1) / course.shape[1]).view(len(films), -1)


def fit(s: Settings):
    torch.manual_seed(s.seed)
    generator = torch.Generator().manual_seed(s.seed)
    films, site = dances(s.dances, s.frames, s.sites, generator)
    eye = Eye(s)
    optimizer = torch.optim.Adam(eye.parameters(), lr=s.lr)
    steps, began = int(os.environ.get("PLANTED_STEPS", s.steps)), time.perf_counter()
    for step in range(1, steps + 1):
        rows = torch.randint(len(films), (s.batch,), generator=generator)
        far = eye(films[rows])
        loss = nn.functional.cross_entropy(-4 * far, site[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            right = (far.argmin(1) == site[rows]).float().mean()
            print(f"step {step} loss {loss.item():.4f} right {right.item():.2f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    fit(Settings())
