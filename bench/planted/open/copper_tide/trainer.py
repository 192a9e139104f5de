"""The trainer: draws, learns, tells the sinks."""

import time
from pathlib import Path

import torch
from series import Windows
from sinks import Sink
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, windows: Windows, sinks: list[Sink], folder: Path, lr: float, weight_decay: float) -> None:
        self.model, self.windows, self.sinks, self.folder = model, windows, sinks, folder
        self.optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=weight_decay)
        self.figures: dict[str, float] = {}
        self.seconds = 0.0

    def _learn(self, batch_size: int) -> None:
        past, future = self.windows.draw(batch_size)
        error = self.model(past) - future
        loss = nn.functional.huber_loss(error, torch.zeros_like(error))
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.figures |= {"loss": loss.item(), "norm": norm.item(), "mae": error.detach().abs().mean().item()}

    @torch.no_grad()
    def _check(self) -> None:
        self.model.eval()
        past, future = self.windows.held_out()
        self.figures["held_out"] = (self.model(past) - future).abs().mean().item()
        self.model.train()
        torch.save(self.model.state_dict(), self.folder / "model.pt")

    def _tell(self, step: int) -> None:
        for sink in self.sinks:
            sink.offer(step, self.figures, self.model)

    def fit(self, steps: int, batch_size: int, check_every: int) -> None:
        began = time.perf_counter()
        for step in range(1, steps + 1):
            self._learn(batch_size)
            if step % check_every == 0:
                self._check()
            self._tell(step)
        self.seconds = time.perf_counter() - began
        for sink in self.sinks:
            sink.close()
