"""Kiln logs: thermocouple readings over a firing, and the shrinkage of the test bars that came out."""

import numpy as np
import torch

HOURS = 24
READINGS = 16  # of one hour
PROBES = 3


def firing(rng):
    t = np.linspace(0, 1, HOURS * READINGS)
    top, soak = rng.uniform(1150, 1290), rng.uniform(0.05, 0.25)
    rise = rng.uniform(0.35, 0.6)
    curve = np.interp(t, [0, 0.12, rise, min(rise + soak, 0.97), 1], [20, 120 + 60 * rng.random(), top, top, 180])
    draught = np.cumsum(rng.normal(0, 1.5, (PROBES, t.size)), -1)
    place = np.array([-25, 0, 14])[:, None] * np.sin(np.pi * t)
    log = curve + place + draught - draught.mean(-1, keepdims=True)
    work = np.exp((log - 1220) / 45).mean(-1)
    return log, 0.08 + 0.05 * np.tanh(8 * work - 1) + rng.normal(0, 0.002, PROBES)


def season(count, seed):
    rng = np.random.default_rng(seed)
    logs, bars = zip(*(firing(rng) for _ in range(count)))
    logs = torch.tensor(np.stack(logs), dtype=torch.float32)
    bars = torch.tensor(np.stack(bars), dtype=torch.float32)
    return (logs - 700) / 400, (bars - 0.08) / 0.04
