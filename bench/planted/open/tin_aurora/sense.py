# Wavefront sensing without labels: guess the aberrations, re-image them, compare with what the detectors saw.
import os
import time
from dataclasses import dataclass, field

import torch
from torch import nn

from optics import Telescope
from tables import shot_noise, stretch


@dataclass
class Night:
    side: int = 112
    pixels: int = 56
    modes: int = 20
    batch: int = 16
    exposures: int = 384
    rms: float = 0.5
    photons: float = 4e4
    rate: float = 4e-4
    steps: int = field(default_factory=lambda: int(os.environ.get("PLANTED_STEPS", 560)))


night = Night()
torch.manual_seed(88)
noise = torch.Generator().manual_seed(4)
telescope = Telescope(night.side, night.pixels, night.modes)

falloff = torch.arange(2, night.modes + 2).float().rsqrt()
truth = torch.randn(night.exposures, night.modes, generator=noise) * falloff * night.rms
with torch.no_grad():
    seen = torch.cat([shot_noise(telescope(part), night.photons, noise) for part in truth.split(32)])

guess = nn.Sequential(
    nn.AvgPool2d(2),
    nn.Flatten(),
    nn.Linear(2 * (night.pixels // 2) ** 2, 256),
    nn.LayerNorm(256),
    nn.SiLU(),
    nn.Linear(256, 192),
    nn.SiLU(),
    nn.Linear(192, night.modes),
)
nn.init.normal_(guess[-1].weight, std=0.01)
optimizer = torch.optim.Adam(guess.parameters(), night.rate)
began = time.perf_counter()
order = []

for step in range(1, night.steps + 1):
    if not order:
        order = list(torch.randperm(night.exposures, generator=noise).split(night.batch))
    rows = order.pop()
    pictures = seen[rows]
    coefficients = guess(pictures)
    again = stretch(telescope(coefficients))
    loss = (again - pictures).square().mean() + 1e-3 * (coefficients / falloff).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(guess.parameters(), 2.0)
    optimizer.step()
    if step % 40 == 0:
        print(f"{step:5d} loss {loss.item():.5f} error {(coefficients - truth[rows]).square().mean().sqrt().item():.3f}", flush=True)

print(f"{night.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")
