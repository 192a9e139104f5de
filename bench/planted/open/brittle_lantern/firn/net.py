import torch
import torch.nn.functional as F
from torch import nn

from .config import Core, Net


class Look(nn.Module):
    """Every slice looks at every other one, up and down the core."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, cfg: Net):
        super().__init__()
        self.first, self.second = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.look = Look(cfg.width, cfg.heads)
        self.near = nn.Sequential(nn.Linear(cfg.width, 4 * cfg.width), nn.GELU(), nn.Linear(4 * cfg.width, cfg.width))

    def forward(self, x):
        x = x + self.look(self.first(x))
        return x + self.near(self.second(x))


class Mender(nn.Module):
    def __init__(self, core: Core, cfg: Net):
        super().__init__()
        self.enter, self.leave = nn.Linear(core.proxies, cfg.width), nn.Linear(cfg.width, core.proxies)
        self.gap = nn.Parameter(torch.zeros(cfg.width))
        self.place = nn.Parameter(0.1 * torch.randn(core.slices, cfg.width))
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.depth))

    def forward(self, core, lost):
        x = torch.where(lost[..., None], self.gap, self.enter(core)) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.leave(x)
