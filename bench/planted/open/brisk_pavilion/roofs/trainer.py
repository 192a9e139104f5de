"""The team's trainer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import nn

from .patches import Batch


class Callback:
    def before_step(self, trainer: Trainer) -> None: ...

    def after_step(self, trainer: Trainer) -> None: ...

    def at_end(self, trainer: Trainer) -> None: ...


class Trainer:
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, callbacks: list[Callback]) -> None:
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks
        self.step, self.loss, self.seconds = 0, float("nan"), 0.0
        self.batch: Batch | None = None
        self.weight: torch.Tensor | None = None
        self.losses: torch.Tensor | None = None

    def _tell(self, moment: str) -> None:
        for callback in self.callbacks:
            getattr(callback, moment)(self)

    def _train_batch(self) -> None:
        self.losses = nn.functional.cross_entropy(self.model(self.batch.x), self.batch.y, reduction="none")
        loss = self.losses.mean() if self.weight is None else (self.losses * self.weight).sum() / self.weight.sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.losses, self.loss = self.losses.detach(), loss.item()

    def fit(self, batches: Iterator[Batch], steps: int) -> None:
        began = time.perf_counter()
        while self.step < steps:
            self.step += 1
            self.batch = next(batches)
            self._tell("before_step")
            self._train_batch()
            self._tell("after_step")
        self.seconds = time.perf_counter() - began
        self._tell("at_end")


class Printer(Callback):
    def __init__(self, every: int) -> None:
        self.every = every

    def after_step(self, trainer: Trainer) -> None:
        if trainer.step % self.every == 0:
            print(f"step {trainer.step} loss {trainer.loss:.4f}", flush=True)

    def at_end(self, trainer: Trainer) -> None:
        print(f"{trainer.step} steps in {trainer.seconds:.2f}s, loss {trainer.loss:.6f}")
