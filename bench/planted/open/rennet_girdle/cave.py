"""A ripening cave: wheels on shelves breathe on their neighbours, the draught comes from the door."""

import numpy as np
import torch


class Cave:
    def __init__(self, wheels, shelves, seed):
        rng = np.random.default_rng(seed)
        self.rng = rng
        row, seat = np.arange(wheels) % shelves, np.arange(wheels) // shelves
        place = np.stack([row / shelves, seat / seat.max()], 1)
        gap = np.abs(row[:, None] - row) + np.abs(seat[:, None] - seat)
        source, target = np.nonzero(gap == 1)
        self.source, self.target = torch.from_numpy(source), torch.from_numpy(target)
        self.count = torch.bincount(self.target, minlength=wheels).clamp(min=1)[:, None].float()
        near = (gap == 1).astype(np.float32)
        self.near = near / near.sum(1, keepdims=True)
        self.place, self.wheels = place.astype(np.float32), wheels

    def night(self):
        """Rind moisture, salt and age of each wheel this evening, and its loss of weight by the morning."""
        fresh = self.rng.random((self.wheels, 3), dtype=np.float32)
        draught = self.rng.random(dtype=np.float32)
        air = np.full((self.wheels, 1), draught, np.float32)
        around = self.near @ fresh
        loss = fresh[:, 0] * (1 - fresh[:, 2]) - 0.5 * around[:, 0] + draught * (1 - self.place[:, 0]) - 0.3 * fresh[:, 1]
        return torch.from_numpy(np.concatenate([fresh, air, self.place], 1)), torch.from_numpy(loss)
