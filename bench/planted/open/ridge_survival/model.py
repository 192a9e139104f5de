"""DeepSurv: a network for the log hazard, with the partial likelihood of Cox."""

import torch
from torch import nn


class HazardNet(nn.Module):
    def __init__(self, features: int, width: int, depth: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(features, width)]
        for _ in range(depth):
            layers += [nn.SELU(), nn.LayerNorm(width), nn.Linear(width, width)]
        self.body = nn.Sequential(*layers, nn.SELU())
        self.hazard = nn.Linear(width, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.hazard(self.body(x)).squeeze(-1)


def cox_loss(hazard: torch.Tensor, times: torch.Tensor, events: torch.Tensor) -> torch.Tensor:
    """Negative partial log likelihood (Breslow's ties)."""
    order = times.argsort(descending=True)
    hazard, events = hazard[order], events[order]
    at_risk = hazard.logcumsumexp(dim=0)
    return -((hazard - at_risk) * events).sum() / events.sum().clamp_min(1)
