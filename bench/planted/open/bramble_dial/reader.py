import torch
from torch import Tensor, nn


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.a = nn.Conv2d(width, width, 3, padding=1)
        self.b = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.b(torch.relu(self.a(self.norm(x))))


class DialReader(nn.Module):
    def __init__(self, width: int = 16, depth: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 5, stride=4, padding=2)
        self.body = nn.Sequential(*[Residual(width) for _ in range(depth)])
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(width * 36, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.stem(x)))
