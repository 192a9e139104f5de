import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, width: int = 24, out: int = 48):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.project = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Linear(64, out))

    def forward(self, x):
        return F.normalize(self.project(self.features(x).mean((2, 3))), dim=1)


def nt_xent(a: torch.Tensor, b: torch.Tensor, temperature: float) -> torch.Tensor:
    z = torch.cat([a, b])
    scores = z @ z.T / temperature
    scores.fill_diagonal_(-1e9)
    n = len(a)
    return F.cross_entropy(scores, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))
