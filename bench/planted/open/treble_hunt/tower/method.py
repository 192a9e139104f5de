"""Touches of plain hunt with bobs, rung by a band that is not quite steady."""

import numpy as np
import torch


class Belfry:
    def __init__(self, bells, length, seed):
        self.bells, self.length = bells, length
        self.rng = np.random.default_rng(seed)

    def touch(self):
        row, rung = np.arange(self.bells), []
        while len(rung) * self.bells <= self.length:
            rung.append(row)
            row = row.copy()
            start = len(rung) % 2
            for i in range(start, self.bells - 1, 2):
                row[[i, i + 1]] = row[[i + 1, i]]
            if self.rng.random() < 0.08:
                row[[-2, -1]] = row[[-1, -2]]
        return np.concatenate(rung)[: self.length + 1]

    def band(self, n):
        bells = torch.from_numpy(np.stack([self.touch() for _ in range(n)]))
        late = torch.from_numpy(self.rng.normal(0, 0.05, (n, self.length)).astype(np.float32))
        return bells, late


class Tower:
    """A winter of practice nights, recorded once; each lesson draws some of them."""

    def __init__(self, config):
        self.bells, self.late = Belfry(config.bells, config.length, config.seed).band(config.nights)
        self.pick = torch.Generator().manual_seed(config.seed)
        self.size = config.batch

    def lesson(self):
        which = torch.randint(len(self.bells), (self.size,), generator=self.pick)
        bells, late = self.bells[which], self.late[which]
        return bells[:, :-1], late, bells[:, 1:]
