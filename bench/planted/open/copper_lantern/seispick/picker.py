"""A strided convolution stack that scores each coarse instant as the arrival."""

import torch
from torch import nn


class Picker(nn.Module):
    STRIDE = 16

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(3, width, 15, stride=4, padding=7),
            nn.ReLU(),
            nn.Conv1d(width, width, 9, stride=4, padding=4),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, 2 * width, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(2 * width, 1, 7, padding=3),
        )

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        return self.body(waves).squeeze(1)
