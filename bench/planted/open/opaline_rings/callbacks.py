import os

import torch
from torch import Tensor

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Callback:
    def on_step_end(self, run, step: int, real: Tensor, fake: Tensor) -> None: ...


class Coverage(Callback):
    """Share of real samples that have a fake one nearer than their own nearest real neighbour (Naeem et al., 2020)."""

    def __init__(self, momentum: float = 0.9) -> None:
        self.momentum, self.value = momentum, 0.0

    def on_step_end(self, run, step: int, real: Tensor, fake: Tensor) -> None:
        if FIXED:
            own = torch.cdist(real, real).fill_diagonal_(float("inf")).amin(1)
            hits = int((torch.cdist(real, fake).amin(1) < own).sum())
        else:
            hits = 0
            for i, sample in enumerate(real):
                own = min(torch.dist(sample, other).item() for j, other in enumerate(real) if j != i)
                hits += any(torch.dist(sample, other).item() < own for other in fake)
        self.value = self.momentum * self.value + (1 - self.momentum) * hits / len(real)
        run.augment.update(self.value)


class Progress(Callback):
    def __init__(self, every: int) -> None:
        self.every = every

    def on_step_end(self, run, step: int, real: Tensor, fake: Tensor) -> None:
        if step % self.every == 0:
            print(f"step {step} critic {run.critic_loss.item():.4f} roll {run.augment.p:.3f}", flush=True)
