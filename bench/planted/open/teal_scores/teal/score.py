import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, h):
        return h + self.b(nn.functional.silu(self.a(self.norm(h))))


class Score(nn.Module):
    def __init__(self, dim, width, depth, levels, activation_checkpointing=False):
        super().__init__()
        self.inp, self.level = nn.Linear(dim, width), nn.Embedding(levels, width)
        self.blocks = nn.ModuleList(Residual(width) for _ in range(depth))
        self.out = nn.Linear(width, dim)
        self.frugal = activation_checkpointing

    def forward(self, x, level):
        h = self.inp(x) + self.level(level)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False) if self.frugal else block(h)
        return self.out(h)
