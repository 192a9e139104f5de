"""Made-up otoliths: an ellipse with lobes, an off-centre nucleus, and rings of landmarks on it."""

import numpy as np
import torch


def collect(cfg):
    rng = np.random.default_rng(cfg.seed)
    k = np.arange(1, cfg.harmonics + 1)
    a = rng.normal(size=(cfg.stones, cfg.harmonics, 2)) / k[:, None] ** 1.5 * 0.2
    a[:, 0] += (1.0, 0.6)
    t = np.linspace(0, 2 * np.pi, cfg.landmarks, endpoint=False)
    wave = np.stack([np.cos(np.outer(k, t)), np.sin(np.outer(k, t))])
    x = a[..., 0] @ wave[0] + 0.15 * a[..., 1] @ wave[1]
    y = a[..., 1] @ wave[1] + 0.1 * x**2
    z = 0.3 * np.cos(x * 2) * (1 - y**2)
    turn = np.linalg.qr(rng.normal(size=(cfg.stones, 3, 3)))[0]
    turn[:, :, 0] *= np.sign(np.linalg.det(turn))[:, None]
    size = np.exp(0.3 * rng.normal(size=(cfg.stones, 1, 1)))
    marks = size * np.stack([x, y, z], -1) @ turn + rng.normal(size=(cfg.stones, 1, 3))
    outline = a.reshape(cfg.stones, -1) * k.repeat(2)
    return torch.from_numpy(outline).float(), torch.from_numpy(marks).float()
