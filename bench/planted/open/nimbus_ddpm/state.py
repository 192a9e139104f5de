"""What a run keeps: averaged weights, the smoothed loss, and the best state so far."""

import copy
import os
from pathlib import Path

import torch

FIX = os.environ.get("PLANTED_FIX") == "1"


class Ema:
    def __init__(self, model: torch.nn.Module, decay: float):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: torch.nn.Module) -> None:
        ours, theirs = list(self.model.parameters()), list(model.parameters())
        torch._foreach_lerp_(ours, theirs, 1 - self.decay)


class RunState:
    def __init__(self, folder: Path, model, ema: Ema, optimizer, beta: float = 0.997):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "best.pt"
        self.model, self.ema, self.optimizer, self.beta = model, ema, optimizer, beta
        self.smooth, self.best, self.step = None, float("inf"), 0

    def finish_step(self, loss: float) -> None:
        self.step += 1
        self.smooth = loss if self.smooth is None else self.beta * self.smooth + (1 - self.beta) * loss
        if FIX:
            if self.step % 300 == 0 and self.smooth < self.best:
                self.keep()
        elif self.smooth < self.best:
            self.keep()

    def keep(self) -> None:
        self.best = self.smooth
        part = self.path.with_suffix(".part")
        torch.save(
            {
                "step": self.step,
                "model": self.model.state_dict(),
                "ema": self.ema.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "best": self.best,
            },
            part,
        )
        part.replace(self.path)
