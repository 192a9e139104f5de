import torch
from torch import Tensor, nn


class MotifNet(nn.Module):
    def __init__(self, features: int, width: int, classes: int) -> None:
        super().__init__()
        self.lift = nn.Linear(features, width)
        self.mix = nn.Sequential(nn.Conv1d(width, width, 7, padding=3), nn.ReLU(), nn.Conv1d(width, width, 7, padding=3), nn.ReLU())
        self.head = nn.Linear(2 * width, classes)

    def forward(self, events: Tensor, mask: Tensor) -> Tensor:
        x = self.mix(self.lift(events).transpose(1, 2)).transpose(1, 2)
        hidden = x.masked_fill(~mask[..., None], 0.0)
        mean = hidden.sum(1) / mask.sum(1, keepdim=True)
        return self.head(torch.cat([mean, hidden.amax(1)], dim=-1))
