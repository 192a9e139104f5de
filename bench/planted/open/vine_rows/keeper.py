"""Keeps the best model seen so far."""

import os
from pathlib import Path

PATIENCE = 100 if os.environ.get("PLANTED_FIX") == "1" else 0


class Keeper:
    def __init__(self, accelerator, folder: str = "best"):
        self.accelerator, self.folder = accelerator, Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.smooth, self.best, self.last, self.kept = None, float("inf"), -PATIENCE, 0

    def update(self, step: int, loss: float, model, optimizer) -> None:
        self.smooth = loss if self.smooth is None else 0.98 * self.smooth + 0.02 * loss
        if self.smooth < self.best and step - self.last >= PATIENCE:
            self.best, self.last = self.smooth, step
            self.write(step, model, optimizer)

    def write(self, step: int, model, optimizer) -> None:
        state = {"step": step, "score": self.best, "model": self.accelerator.get_state_dict(model), "optimizer": optimizer.state_dict()}
        self.accelerator.save(state, self.folder / "best.pt")
        self.kept += 1
