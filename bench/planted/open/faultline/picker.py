"""A small U-shaped network that says where the first motion is."""

import torch
from torch import nn


def stage(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv1d(inputs, outputs, 7, stride, 3, bias=False), nn.BatchNorm1d(outputs), nn.ReLU())


class Picker(nn.Module):
    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.enter = stage(3, width)
        self.down = nn.ModuleList([stage(width, 2 * width, 4), stage(2 * width, 3 * width, 4)])
        self.up = nn.ModuleList([stage(3 * width + 2 * width, 2 * width), stage(2 * width + width, width)])
        self.leave = nn.Conv1d(width, 1, 1)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        levels = [self.enter(wave)]
        for stage_down in self.down:
            levels.append(stage_down(levels[-1]))
        x = levels.pop()
        for stage_up in self.up:
            beside = levels.pop()
            x = nn.functional.interpolate(x, size=beside.shape[-1], mode="nearest")
            x = stage_up(torch.cat([x, beside], dim=1))
        return self.leave(x).squeeze(1)
