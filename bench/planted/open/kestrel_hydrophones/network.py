import torch
import torch.nn as nn


class Residual(nn.Module):
    def __init__(self, width: int, dilation: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Conv1d(width, width, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.body(x))


class CallNet(nn.Module):
    def __init__(self, channels: int, classes: int, width: int = 32):
        super().__init__()
        self.stem = nn.Conv1d(channels, width, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(*[Residual(width, 2**i) for i in range(3)])
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean(dim=-1))
