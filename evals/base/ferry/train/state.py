"""What the loop and its hooks share."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import torch
from torch import nn

from ferry.config import Config
from ferry.data.module import DataModule
from ferry.optim.averaging import WeightAverage
from ferry.optim.losses import Losses
from ferry.train.ranks import Ranks


@dataclass
class TrainState:
    config: Config
    data: DataModule
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    ranks: Ranks
    average: WeightAverage | None = None
    step: int = 0
    epoch: int = 0
    total_steps: int = 0
    samples: int = 0
    losses: Losses | None = None
    gradient_norm: torch.Tensor | None = None
    recent: deque[torch.Tensor] = field(default_factory=lambda: deque(maxlen=50))
    scores: dict[str, float] = field(default_factory=dict)
    best: float = float("-inf")
    stop: bool = False

    def snapshot(self) -> dict:
        """Everything that a restart needs."""
        from ferry.train.ranks import plain_model

        return {
            "model": plain_model(self.model).state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "average": self.average.state() if self.average else None,
            "step": self.step,
            "epoch": self.epoch,
            "samples": self.samples,
            "random": torch.get_rng_state(),
        }
