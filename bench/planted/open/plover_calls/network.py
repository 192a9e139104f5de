"""Convolutions on the wave form, then a recurrent layer."""

import torch
from torch import nn


class Front(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(1, width, 32, stride=8, padding=12)])
        for _ in range(3):
            self.layers.append(nn.Conv1d(width, width, 8, stride=2, padding=3))
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in self.layers)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        x = wave[:, None]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.relu(norm(layer(x)))
        return x.transpose(1, 2)


class CallNet(nn.Module):
    def __init__(self, width: int, kinds: int) -> None:
        super().__init__()
        self.front = Front(width)
        self.memory = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.ask = nn.Linear(2 * width, 1)
        self.head = nn.Linear(2 * width, kinds)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        states, _ = self.memory(self.front(wave))
        weights = self.ask(states).softmax(dim=1)
        return self.head((weights * states).sum(1))
