"""Traits that stop to improve get less weight, those that move get more."""

from collections import deque

import torch
from lightning.pytorch import Callback

from .slopes import slope


class TraitBalance(Callback):
    def __init__(self, window: int, heat: float) -> None:
        self.window, self.heat = window, heat
        self.past: list[deque[float]] = []

    def on_train_start(self, trainer, module) -> None:
        self.past = [deque(maxlen=self.window) for _ in module.emphasis]

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx) -> None:
        for past, value in zip(self.past, module.latest.tolist(), strict=True):
            past.append(value)
        trends = torch.tensor([slope(past) * self.window for past in self.past])
        module.emphasis.copy_(torch.softmax(-trends / self.heat, 0) * len(trends))
