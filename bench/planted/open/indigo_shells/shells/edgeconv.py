"""Dynamic graph CNN (Wang et al., 2019) with the graph rebuilt in feature space by each block."""

import os

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

FIXED = os.environ.get("PLANTED_FIX") == "1"


def neighbourhood(x: Tensor, k: int) -> Tensor:
    with torch.no_grad():
        index = torch.cdist(x, x).topk(k + 1, dim=-1, largest=False).indices[..., 1:]
    batch = torch.arange(len(x))[:, None, None]
    return x[batch, index]


class EdgeConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, k: int) -> None:
        super().__init__()
        self.k = k
        self.centre = nn.Linear(inputs, outputs)
        self.edge = nn.Linear(inputs, outputs, bias=False)
        self.norm = nn.LayerNorm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        near = neighbourhood(x, self.k).amax(2) - x
        return torch.relu(self.norm(self.centre(x) + self.edge(near)))


class ShellNet(nn.Module):
    def __init__(self, widths: list[int], neighbours: int, checkpoint: bool, classes: int = 4) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(EdgeConv(a, b, neighbours) for a, b in zip([3, *widths], widths))
        self.head = nn.Linear(sum(widths), classes)
        self.checkpoint = checkpoint

    def forward(self, x: Tensor) -> Tensor:
        seen = []
        for block in self.blocks:
            if not FIXED and self.checkpoint:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
            seen.append(x.amax(1))
        return self.head(torch.cat(seen, dim=-1))
