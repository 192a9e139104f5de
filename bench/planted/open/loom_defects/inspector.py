import math
import os

import torch
from torch import nn

ON_DEVICE = os.environ.get("PLANTED_FIX") == "1"


class GradualNoise(nn.Module):
    """Noise on the features that fades from stage to stage."""

    def __init__(self, start=0.3, fade=15):
        super().__init__()
        self.start, self.fade = start, fade
        self.stage = torch.zeros(()) if ON_DEVICE else 0

    def reach(self, stage):
        if ON_DEVICE:
            self.stage.fill_(stage)
        else:
            self.stage = stage

    def forward(self, h, grain):
        if self.training:
            amount = self.start * torch.exp(-self.stage / self.fade) if ON_DEVICE else self.start * math.exp(-self.stage / self.fade)
            h = h + amount * grain
        return h


class Inspector(nn.Module):
    def __init__(self, width=24, classes=3):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.noise = GradualNoise()
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x, grain):
        h = self.features(x)
        return self.head(self.noise(h, grain).amax((2, 3)))
