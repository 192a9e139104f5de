"""How well the hazards order the people who were left out."""

import os
from dataclasses import dataclass, field

import torch
from cohort import Cohort
from model import cox_loss

FIXED = os.environ.get("PLANTED_FIX") == "1"


def concordance(hazard: torch.Tensor, times: torch.Tensor, events: torch.Tensor) -> float:
    """The share of comparable pairs in the right order."""
    earlier = (times[:, None] < times[None]) & events[:, None]
    right = (hazard[:, None] > hazard[None]) & earlier
    return float(right.sum() / earlier.sum().clamp_min(1))


def brier(hazard: torch.Tensor, times: torch.Tensor, horizon: float = 0.7) -> float:
    survived = (times > horizon).float()
    probability = torch.exp(-horizon * torch.exp(hazard - hazard.mean()))
    return float((survived - probability).square().mean())


@dataclass
class Validator:
    cohort: Cohort
    batch_size: int = 512 if FIXED else 1
    every: int = 5
    best: float = 0.0
    trace: list[dict] = field(default_factory=list)

    def due(self, step: int) -> bool:
        return step % self.every == 0

    def measure(self, model: torch.nn.Module, step: int) -> dict[str, float]:
        training = model.training
        model.eval()
        hazards = [model(batch.features).detach() for batch in self.cohort.batches(self.batch_size)]
        model.train(training)
        hazard, times, events = torch.cat(hazards), self.cohort.times, self.cohort.events
        figures = {
            "step": step,
            "loss": float(cox_loss(hazard, times, events)),
            "concordance": concordance(hazard, times, events),
            "brier": brier(hazard, times),
        }
        self.best = max(self.best, figures["concordance"])
        self.trace.append(figures)
        return figures
