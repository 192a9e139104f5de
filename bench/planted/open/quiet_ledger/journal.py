"""Figures of a run: a line for each step in a CSV file, and a smoothed loss."""

import copy
import csv
from pathlib import Path


class Journal:
    FIELDS = ["step", "loss", "smooth", "gradient", "rate"]

    def __init__(self, path: Path, settings: dict) -> None:
        self.path, self.settings, self.smooth = path, settings, None
        with path.open("w", newline="") as sink:
            csv.writer(sink).writerow(self.FIELDS)

    def snapshot(self) -> dict:
        return copy.deepcopy(self.settings)

    def add(self, step: int, loss: float, gradient: float, rate: float) -> dict:
        self.smooth = loss if self.smooth is None else 0.95 * self.smooth + 0.05 * loss
        row = {"step": step, "loss": loss, "smooth": self.smooth, "gradient": gradient, "rate": rate}
        with self.path.open("a", newline="") as sink:
            csv.DictWriter(sink, self.FIELDS).writerow(row)
        return {**row, "settings": self.snapshot()}
