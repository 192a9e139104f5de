"""Fleeces as the laser scanner sees them: diameters and curvatures along a staple, and a grade by the wool classer."""

import numpy as np
import torch

GRADES = 7


def shear(conf):
    rng = np.random.default_rng(conf["seed"])
    n, fibres = conf["fleeces"], conf["fibres"]
    mean = rng.normal(21, 2.6, n)
    spread = rng.gamma(9, 0.35, n)
    vegetable = rng.beta(1.2, 14, n)
    season = np.cumsum(rng.normal(0, 0.22, (n, fibres)), 1)
    diameter = mean[:, None] + season + spread[:, None] * rng.normal(size=(n, fibres))
    crimp = 92 - 2.1 * mean[:, None] + 9 * rng.normal(size=(n, fibres)) - 4 * season
    speck = rng.random((n, fibres)) < vegetable[:, None]
    bright = rng.normal(0, 1, (n, fibres)) - 1.5 * speck
    score = mean + 0.9 * spread + 30 * vegetable + 0.6 * np.abs(season).max(1) + rng.normal(0, 0.4, n)
    grade = np.digitize(score, np.quantile(score, np.arange(1, GRADES) / GRADES))
    seen = np.stack([(diameter - 21) / 4, (crimp - 48) / 12, bright, (diameter - 21) ** 2 / 30], 1)
    seen, grade = torch.tensor(seen, dtype=torch.float32), torch.from_numpy(grade)
    back = conf["kept_back"]
    return (seen[back:], grade[back:]), (seen[:back], grade[:back])
