"""Which patches to believe: those whose smoothed loss is not among the worst."""

import os

import numpy as np
import torch

from .trainer import Callback, Trainer

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Ledger:
    """A smoothed loss for each patch of the register."""

    def __init__(self, count: int, start: float, decay: float) -> None:
        self.decay = decay
        if FIXED:
            self.scores = np.full(count, start)
        else:
            self.scores = dict.fromkeys(range(count), start)

    def note(self, ids: list[int], losses: list[float]) -> None:
        for number, loss in zip(ids, losses):
            self.scores[number] = self.decay * self.scores[number] + (1 - self.decay) * loss

    def of(self, ids: list[int]) -> list[float]:
        return [float(self.scores[number]) for number in ids]

    def level(self, share: float) -> float:
        """The score below which `share` of the register lies."""
        place = min(int(share * len(self.scores)), len(self.scores) - 1)
        if FIXED:
            return float(np.partition(self.scores, place)[place])
        else:
            ranked = sorted(self.scores.items(), key=lambda entry: entry[1])
            return ranked[place][1]


class Doubt(Callback):
    def __init__(self, ledger: Ledger, believed: float, patience: int) -> None:
        self.ledger, self.believed, self.patience = ledger, believed, patience

    def before_step(self, trainer: Trainer) -> None:
        if trainer.step <= self.patience:
            trainer.weight = None
            return
        limit = self.ledger.level(self.believed)
        mine = self.ledger.of(trainer.batch.ids.tolist())
        trainer.weight = torch.tensor([1.0 if score <= limit else 0.1 for score in mine])

    def after_step(self, trainer: Trainer) -> None:
        self.ledger.note(trainer.batch.ids.tolist(), trainer.losses.tolist())
