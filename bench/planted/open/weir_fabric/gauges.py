"""Synthetic gauges: rain falls, travels down several branches with delays, and is measured with noise."""

import numpy as np
import torch

START = 1_700_000_000


class River:
    def __init__(self, catchments=40, hours=12 * 60, branches=15, window=12, seed=0):
        rng = np.random.default_rng(seed)
        rain = rng.gamma(0.3, 1.0, (hours + 40, catchments, branches))
        delay = rng.integers(1, 20, branches)
        flow = np.zeros((hours, catchments, branches))
        for b in range(branches):
            kernel = np.exp(-np.arange(40) / (2 + delay[b]))
            for k in range(20):
                flow[:, :, b] += kernel[k] * rain[20 - k : 20 - k + hours, :, b]
        weight = rng.uniform(0.2, 1.0, branches)
        level = np.log1p((flow * weight).sum(-1)) + 0.02 * rng.normal(size=(hours, catchments))
        self.clock = START + 3600 * np.arange(hours)
        self.window = window
        dtype = torch.get_default_dtype()
        day = 2 * np.pi * (self.clock % 86400) / 86400
        season = np.repeat(np.stack([np.sin(day)], 1)[:, None], catchments, 1)
        x = np.concatenate([np.log1p(flow), season], -1)
        x = (x - x.mean((0, 1))) / (x.std((0, 1)) + 1e-6)
        self.x = torch.as_tensor(x).to(dtype)
        self.y = torch.as_tensor((level - level.mean()) / level.std()).to(dtype)
        self.inputs = branches + 1

    def season(self):
        """Windows in order: (catchment, hour, gauge) and the level one hour on."""
        for start in range(0, len(self.x) - self.window - 1, self.window):
            stop = start + self.window
            yield self.x[start:stop].transpose(0, 1), self.y[start + 1 : stop + 1].transpose(0, 1)
