"""An exponential average of the weights, which evaluation and checkpoints use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class WeightAverage:
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.shadow = [parameter.detach().clone() for parameter in model.parameters()]

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        live = [parameter.detach() for parameter in model.parameters()]
        torch._foreach_lerp_(self.shadow, live, 1.0 - decay)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        live = [parameter.detach().clone() for parameter in model.parameters()]
        self._set(model, self.shadow)
        try:
            yield
        finally:
            self._set(model, live)

    @torch.no_grad()
    def _set(self, model: nn.Module, values: list[torch.Tensor]) -> None:
        for parameter, value in zip(model.parameters(), values, strict=True):
            parameter.copy_(value)

    def state(self) -> dict:
        return {"updates": self.updates, "shadow": [value.clone() for value in self.shadow]}

    def restore(self, state: dict) -> None:
        self.updates = state["updates"]
        self.shadow = [value.clone() for value in state["shadow"]]
