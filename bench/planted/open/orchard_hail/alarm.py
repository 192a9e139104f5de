"""A recurrent network with a memory of the storm, and its training."""

import copy
import time
from pathlib import Path

import torch
from radar import BEAMS
from torch import nn
from torch.utils.data import DataLoader


class Alarm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Conv1d(BEAMS, width, 5, padding=2), nn.GELU(), nn.Conv1d(width, width, 5, 2, 2), nn.GELU())
        self.memory = nn.GRU(width, width, batch_first=True)
        self.leave = nn.Linear(width, 1)

    def forward(self, echo: torch.Tensor) -> torch.Tensor:
        states, _ = self.memory(self.enter(echo.transpose(1, 2)).transpose(1, 2))
        return self.leave(states[:, -1]).squeeze(-1)


class Average:
    """A slow copy of the weights, for the evaluation."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def follow(self, model: nn.Module) -> None:
        torch._foreach_lerp_(list(self.model.parameters()), list(model.parameters()), 1 - self.decay)


class Fit:
    def __init__(self, model: Alarm, lr: float, folder: Path) -> None:
        self.model, self.average, self.folder = model, Average(model, 0.98), folder
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr, momentum=0.5)
        self.loss, self.steps = float("nan"), 0

    def rounds(self, loader: DataLoader, valid: DataLoader, steps: int, check_every: int) -> float:
        """Goes over the season again and again until the steps are done; returns the seconds."""
        number, began = 0, time.perf_counter()
        while self.steps < steps:
            loader.dataset.set_round(number)
            self._round(loader, steps)
            number += 1
            if number % check_every == 0:
                print(f"round {number}: loss {self.loss:.4f}, held out {self.check(valid):.4f}", flush=True)
                torch.save(self.average.model.state_dict(), self.folder / "alarm.pt")
        return time.perf_counter() - began

    def _round(self, loader: DataLoader, steps: int) -> None:
        for echo, hail in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(self.model(echo), hail)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(self.model.parameters(), 0.5)
            self.optimizer.step()
            self.average.follow(self.model)
            self.loss, self.steps = loss.item(), self.steps + 1
            if self.steps == steps:
                break

    @torch.no_grad()
    def check(self, valid: DataLoader) -> float:
        losses = [nn.functional.binary_cross_entropy_with_logits(self.average.model(echo), hail) for echo, hail in valid]
        return torch.stack(losses).mean().item()
