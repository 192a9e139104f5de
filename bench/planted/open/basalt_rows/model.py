"""A transformer over the columns of a table of rock samples."""

import torch
from memory import lean
from torch import nn


class ColumnTokens(nn.Module):
    """One token a column: value times weight plus bias, and a token for the answer."""

    def __init__(self, columns: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns, width) * 0.1)
        self.bias = nn.Parameter(torch.zeros(columns, width))
        self.answer = nn.Parameter(torch.zeros(1, 1, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x[:, :, None] * self.weight + self.bias
        return torch.cat([self.answer.expand(len(x), -1, -1), tokens], dim=1)


@lean
class Feed(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.rise, self.fall = nn.LayerNorm(width), nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate = self.rise(self.norm(x)).chunk(2, dim=-1)
        return x + self.fall(value * nn.functional.gelu(gate))


@lean
class Attend(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.mix(self.norm(x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width))


@lean
class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attend, self.feed = Attend(width, heads), Feed(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.feed(self.attend(x))


@lean
class Stage(nn.Module):
    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class RowNet(nn.Module):
    def __init__(self, columns: int, width: int, heads: int, stages: int, layers: int, answers: int) -> None:
        super().__init__()
        self.tokens = ColumnTokens(columns, width)
        self.stages = nn.Sequential(*(Stage(width, heads, layers) for _ in range(stages)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, answers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(self.tokens(x))[:, 0])
