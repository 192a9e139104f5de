"""Kiln logs: temperature every few minutes, damper and gas, and how far the three witness cones bent."""

import csv
import io
from dataclasses import dataclass, field

import numpy as np
import torch


def write_log(rng, moments):
    """One firing as the controller's card holds it."""
    hours = np.sort(rng.uniform(0, 14, moments))
    top, soak, pace = rng.uniform(1180, 1290), rng.uniform(0.1, 1.2), rng.uniform(80, 150)
    heat = np.minimum(20 + pace * hours * (1 + 0.1 * np.sin(hours)), top)
    heat = heat + np.cumsum(rng.normal(0, 0.8, moments))
    gas = np.clip(pace / 150 + 0.1 * rng.normal(size=moments), 0, 1.2)
    damper = np.clip(0.5 + 0.2 * np.sin(hours * soak) + 0.05 * rng.normal(size=moments), 0, 1)
    out = io.StringIO()
    csv.writer(out).writerows(np.stack([hours, heat, gas, damper], 1).round(3))
    return out.getvalue()


def read_log(text):
    return np.loadtxt(io.StringIO(text), delimiter=",")


@dataclass
class Shed:
    firings: int = 160
    moments: int = 96
    seed: int = 77
    logs: torch.Tensor = field(init=False)
    cones: torch.Tensor = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        raw = np.stack([read_log(write_log(rng, self.moments)) for _ in range(self.firings)])
        dose = np.maximum(raw[..., 1] - np.array([[1050.0], [1120.0], [1180.0]])[:, None], 0)
        bend = np.tanh((dose * np.diff(raw[..., 0], prepend=0)).sum(-1).T / 300)
        self.logs = torch.from_numpy((raw - raw.mean((0, 1))) / raw.std((0, 1)))
        self.cones = torch.from_numpy(bend + rng.normal(0, 0.01, bend.shape))

    def windows(self, n, generator):
        """Some firings, each with a little drift of the thermocouple."""
        rows = torch.randint(0, self.firings, (n,), generator=generator)
        drift = torch.randn(n, 1, 1, generator=generator) * 0.02
        return self.logs[rows] + drift, self.cones[rows]
