"""Encoder, projector, and the contrastive loss."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width: int, embedding: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.project = nn.Sequential(nn.Linear(8 * width, 128), nn.ReLU(), nn.Linear(128, embedding))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.project(self.body(x)), dim=1)


class Contrast(nn.Module):
    """NT-Xent, one value for each pair."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        both = torch.cat([left, right])
        scores = (both @ both.T / self.temperature).fill_diagonal_(-1e9)
        count = len(left)
        partner = torch.cat([torch.arange(count) + count, torch.arange(count)])
        each = nn.functional.cross_entropy(scores, partner, reduction="none")
        return 0.5 * (each[:count] + each[count:])
