"""Readings of fermenting doughs: gas, acidity, warmth and stretch over twelve hours, and how long until the oven."""

import numpy as np
import torch


class Bakery:
    def __init__(self, jars=24_000, marks=48, seed=3):
        rng = np.random.default_rng(seed)
        t = np.linspace(0, 12, marks, dtype=np.float32)
        speed = rng.gamma(9, 1 / 9, (jars, 1)).astype(np.float32)
        warmth = rng.normal(24, 2, (jars, 1)).astype(np.float32)
        pace = speed * np.exp(0.08 * (warmth - 24))
        gas = 1 / (1 + np.exp(-(t * pace - 5)))
        acid = 6 - 2 * (1 - np.exp(-t * pace / 6))
        stretch = np.exp(-(((t * pace - 5.5) / 2) ** 2))
        x = np.stack([gas, acid - 5, np.broadcast_to((warmth - 24) / 4, gas.shape), stretch], 2)
        x += 0.05 * rng.standard_normal(x.shape, dtype=np.float32)
        ready = 5.5 / pace[:, 0] / 6
        spilled = rng.random(jars) < 0.03
        ready[spilled] += rng.standard_normal(spilled.sum()) * 3
        self.x, self.ready = torch.from_numpy(x.reshape(jars, -1)), torch.from_numpy(ready.astype(np.float32))
        self.g = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.x)

    def stream(self, batch):
        while True:
            for jars in torch.randperm(len(self), generator=self.g).split(batch):
                if len(jars) == batch:
                    yield jars, self.x[jars], self.ready[jars]
