"""A transformer over the patches of all frames."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Attend(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.into(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = Attend(width, heads)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.first(x))
        return x + self.feed(self.second(x))


class Nowcaster(nn.Module):
    def __init__(self, frames: int, side: int, patch: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.patch, self.frames = patch, frames
        self.cells = (side // patch) ** 2
        self.embed = nn.Linear(patch * patch, width)
        self.place = nn.Parameter(0.02 * torch.randn(frames * self.cells, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])
        self.norm, self.paint = nn.LayerNorm(width), nn.Linear(width, patch * patch)

    def forward(self, fields: torch.Tensor) -> torch.Tensor:
        cut = fields.unfold(2, self.patch, self.patch).unfold(3, self.patch, self.patch)
        tokens = self.embed(cut.flatten(4).flatten(1, 3)) + self.place
        last = self.layers(tokens)[:, -self.cells :]
        return self.paint(self.norm(last))

    def cut(self, field: torch.Tensor) -> torch.Tensor:
        return field.unfold(1, self.patch, self.patch).unfold(2, self.patch, self.patch).flatten(3).flatten(1, 2)
