import os

import torch
from torch import nn
from torch.nn import functional as F


def stack(features, width, kinds, depth):
    layers = [nn.Linear(features, width), nn.GELU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(width, kinds))


class Lesson(nn.Module):
    """Distillation loss whose temperature cools from lesson to lesson."""

    def __init__(self, pupil, options):
        super().__init__()
        self.pupil = pupil
        self.hot, self.cold = options.start_temperature, options.end_temperature
        self.hard_share, self.total = options.hard_share, options.lessons
        self.given = torch.zeros(()) if os.environ.get("PLANTED_FIX") == "1" else 0

    def forward(self, spectra, told, kind):
        temperature = self.hot + (self.cold - self.hot) * (self.given / self.total)
        self.given = self.given + 1
        target = F.softmax(told / temperature, dim=1)
        answer = self.pupil(spectra)
        soft = F.kl_div(F.log_softmax(answer / temperature, dim=1), target, reduction="batchmean")
        return self.hard_share * F.cross_entropy(answer, kind) + (1 - self.hard_share) * soft * temperature**2
