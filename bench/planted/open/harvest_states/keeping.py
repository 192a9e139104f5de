"""Keeps the best student on disk."""

import gzip
import io
import os
from pathlib import Path

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Best:
    """Remembers the lowest smoothed loss; the state that reached it is on disk, compressed for the cluster's quota."""

    def __init__(self, path: Path, patience: int = 60 if FIXED else 0, smoothing: float = 0.97) -> None:
        self.path, self.patience, self.smoothing = path, patience, smoothing
        self.mean, self.lowest, self.when, self.writes = None, float("inf"), 0, 0

    def improved(self, loss: float, step: int) -> bool:
        self.mean = loss if self.mean is None else self.smoothing * self.mean + (1 - self.smoothing) * loss
        if self.mean < self.lowest:
            self.lowest = self.mean
            return step - self.when > self.patience
        return False

    def keep(self, step: int, **parts) -> None:
        self.when = step
        buffer = io.BytesIO()
        torch.save({name: part.state_dict() for name, part in parts.items()} | {"step": step}, buffer)
        with gzip.open(self.path, "wb", compresslevel=1) as stream:
            stream.write(buffer.getbuffer())
        self.writes += 1
