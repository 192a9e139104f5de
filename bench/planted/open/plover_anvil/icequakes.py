"""Spectrograms of a calving glacier: bursts, tremor and rain on the sensor."""

import numpy as np
import torch

TIMES, BANDS = 48, 64


def listen(count, seed):
    rng = np.random.default_rng(seed)
    t, f = np.arange(TIMES)[None, :, None], np.arange(BANDS)[None, None, :]
    start, pitch = rng.uniform(4, 40, (count, 1, 1)), rng.uniform(5, 55, (count, 1, 1))
    burst = np.exp(-np.clip(t - start, 0, None) / rng.uniform(2, 9, (count, 1, 1))) * (t >= start)
    tremor = rng.uniform(0, 0.6, (count, 1, 1)) * np.cos(f / 4 + rng.uniform(0, 6, (count, 1, 1)))
    shape = 2.5 * burst * np.exp(-(((f - pitch) / 8) ** 2)) + tremor
    return torch.from_numpy(shape.astype(np.float32) - 0.2)


class Glacier:
    """Keeps the windows in memory; an epoch is one tide."""

    def __init__(self, count, batch, seed):
        self.windows, self.batch = listen(count, seed), batch
        self.gen = torch.Generator().manual_seed(seed)

    def tide(self):
        for rows in torch.randperm(len(self.windows), generator=self.gen).split(self.batch):
            yield self.windows[rows]
