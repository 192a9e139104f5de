"""A small encoder and decoder with the interface that the Trainer expects."""

import torch
from scenes import CHANNELS, CLASSES
from torch import nn


class Mapper(nn.Module):
    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(CHANNELS, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU())
        self.deep = nn.Sequential(
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 2, dilation=2), nn.BatchNorm2d(2 * width), nn.ReLU(),
        )  # fmt: skip
        self.narrow = nn.Conv2d(2 * width, width, 1)
        self.leave = nn.Conv2d(width, len(CLASSES) * 4, 3, 1, 1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        early = self.enter(pixel_values)
        deep = nn.functional.interpolate(self.narrow(self.deep(early)), scale_factor=2.0, mode="nearest")
        logits = self.shuffle(self.leave(early + deep))
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
