"""A bonus for places that were seldom visited, counted over cells of the sensor space."""

import math

import numpy as np


class VisitCounts:
    def __init__(self, scale: float, weight: float, limit: int = 400_000):
        self.scale, self.weight, self.limit = scale, weight, limit
        self.counts: dict = {}

    def _visit(self, cell) -> float:
        n = self.counts.get(cell, 0) + 1
        self.counts[cell] = n
        return self.weight / math.sqrt(n)

    def bonus(self, observations: np.ndarray) -> np.ndarray:
        """One bonus for each (time, drone)."""
        if len(self.counts) > self.limit:
            self.counts.clear()
        out = np.empty(observations.shape[:2], dtype=np.float32)
        for t in range(out.shape[0]):
            for i in range(out.shape[1]):
                cell = tuple(math.floor(float(v) * self.scale) for v in observations[t, i])
                out[t, i] = self._visit(cell)
        return out

    def bonus_bulk(self, observations: np.ndarray) -> np.ndarray:
        if len(self.counts) > self.limit:
            self.counts.clear()
        times, drones, width = observations.shape
        cells = np.floor(observations.astype(np.float64) * self.scale).astype(np.int8).reshape(-1, width)
        flat = [self._visit(cell.tobytes()) for cell in cells]
        return np.array(flat, dtype=np.float32).reshape(times, drones)
