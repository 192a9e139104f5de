"""Losses for the channel map of an estuary."""

import os
from functools import lru_cache

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


def dice(probability: torch.Tensor, truth: torch.Tensor, smooth: float = 1.0) -> torch.Tensor:
    shared = (probability * truth).sum(dim=(1, 2))
    return 1 - ((2 * shared + smooth) / (probability.sum(dim=(1, 2)) + truth.sum(dim=(1, 2)) + smooth)).mean()


def neighbourhood(height: int, width: int, reach: float) -> torch.Tensor:
    """How much an error at one pixel weighs at each other pixel; the rows add up to one."""
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    places = torch.stack([rows.flatten(), columns.flatten()], dim=1).float()
    weights = torch.exp(-torch.cdist(places, places) / reach)
    return weights / weights.sum(dim=1, keepdim=True)


if FIXED:
    neighbourhood = lru_cache(neighbourhood)


class SpreadError(nn.Module):
    """The squared error after it was spread over the neighbourhood: small shifts of a bank cost little."""

    def __init__(self, reach: float = 3.0) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, probability: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        _, height, width = truth.shape
        error = (probability - truth).flatten(1)
        return (error @ neighbourhood(height, width, self.reach)).square().mean()


class ChannelLoss(nn.Module):
    def __init__(self, spread: float = 4.0, overlap: float = 1.0) -> None:
        super().__init__()
        self.spread, self.overlap = spread, overlap
        self.spread_error = SpreadError()
        self.parts: dict[str, float] = {}

    def forward(self, scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        probability = scores.sigmoid()
        parts = {
            "pixel": nn.functional.binary_cross_entropy_with_logits(scores, truth),
            "dice": self.overlap * dice(probability, truth),
            "spread": self.spread * self.spread_error(probability, truth),
        }
        self.parts = {name: value.item() for name, value in parts.items()}
        return sum(parts.values())
