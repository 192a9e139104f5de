"""Checks the process against measurements that it has not seen; rarely, because each check factors the matrix again."""

import torch


class HeldOut:
    def __init__(self, x, y, every):
        self.x, self.y, self.every = x, y, every
        self.history = []

    def maybe(self, step, model):
        if step % self.every:
            return
        mean, variance = model.predict(self.x)
        error = mean - self.y
        inside = (error.abs() < 1.96 * variance.sqrt()).float().mean().item()
        rmse = error.square().mean().sqrt().item()
        self.history.append((step, rmse, inside))
        print(f"   held out: rmse {rmse:.4f}, {100 * inside:.0f}% inside the 95% band", flush=True)

    def best(self):
        return min(self.history, key=lambda row: row[1], default=None)
