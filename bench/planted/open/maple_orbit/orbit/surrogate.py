import torch
from torch import Tensor, nn


class Surrogate(nn.Module):
    """Random Fourier features, then wide layers with a residual on the state."""

    def __init__(self, inputs: int, outputs: int, features: int, width: int, depth: int) -> None:
        super().__init__()
        self.register_buffer("waves", torch.randn(inputs, features // 2))
        layers: list[nn.Module] = [nn.Linear(features, width), nn.ReLU(inplace=True)]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.ReLU(inplace=True)]
        self.net = nn.Sequential(*layers, nn.Linear(width, outputs))
        self.outputs = outputs

    def forward(self, state: Tensor) -> Tensor:
        angle = state @ self.waves
        return state[:, : self.outputs] + self.net(torch.cat([angle.sin(), angle.cos()], dim=1))
