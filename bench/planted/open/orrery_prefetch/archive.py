"""The archive of light curves. Since 2009 they are stored as packed floats; the plates of the old survey are text tables
(day, magnitude, error), unevenly sampled, one observation per line, some lines struck out with a '#'."""

import os

import numpy as np

GRID = 200
KEEP = os.environ.get("PLANTED_FIX") == "1"


def packed(curve):
    return curve.astype("<f4").tobytes()


def table(rng, curve, rows):
    day = np.sort(rng.uniform(0, GRID - 1, rows))
    magnitude = np.interp(day, np.arange(GRID), curve) + rng.normal(0, 0.05, rows)
    error = rng.uniform(0.02, 0.1, rows)
    struck = np.where(rng.random(rows) < 0.02, "# ", "")
    return "\n".join(f"{s}{d:.5f} {m:.4f} {e:.4f}" for s, d, m, e in zip(struck, day, magnitude, error))


class Archive:
    classes = 5

    def __init__(self, n=1600, plates=16, seed=1):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, self.classes, n)
        t = np.arange(GRID)
        self.records, self.kept = [], {}
        old = set(rng.choice(n, plates, replace=False).tolist())
        for i in range(n):
            k = self.labels[i]
            phase = (t / (11 + 7 * k) + rng.random()) % 1
            curve = np.sin(2 * np.pi * phase) if k % 2 else np.abs(phase - 0.3 - 0.05 * k)
            curve = curve * rng.uniform(0.5, 1.0) + rng.normal(0, 0.15, GRID)
            self.records.append(table(rng, curve, 38_000) if i in old else packed(curve))
            if KEEP and i in old:
                self.kept[i] = self.from_plate(self.records[i])

    def __len__(self):
        return len(self.records)

    def from_plate(self, text):
        """Weighted means per day of the grid; empty days take the value of the day before."""
        total, weight = [0.0] * GRID, [0.0] * GRID
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            day, magnitude, error = map(float, line.split())
            w = 1.0 / (error * error)
            total[int(day)] += w * magnitude
            weight[int(day)] += w
        curve = np.zeros(GRID, np.float32)
        for day in range(GRID):
            curve[day] = total[day] / weight[day] if weight[day] else curve[day - 1]
        return curve

    def __getitem__(self, i):
        record = self.records[i]
        if isinstance(record, str):
            curve = self.kept.get(i)
            if curve is None:
                curve = self.from_plate(record)
        else:
            curve = np.frombuffer(record, "<f4")
        return (curve - curve.mean()) / (curve.std() + 1e-6), int(self.labels[i])
