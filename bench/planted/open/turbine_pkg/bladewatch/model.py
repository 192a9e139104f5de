import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, ch: int) -> None:
        super().__init__()
        self.a = nn.Conv1d(ch, ch, 5, padding=2)
        self.b = nn.Conv1d(ch, ch, 5, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.b(torch.relu(self.a(torch.relu(x))))


class BladeNet(nn.Module):
    def __init__(self, ch: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv1d(1, ch, 9, stride=4, padding=4)
        self.body = nn.Sequential(*[Residual(ch) for _ in range(depth)])
        self.head = nn.Linear(ch, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.stem(x)).mean(-1))
