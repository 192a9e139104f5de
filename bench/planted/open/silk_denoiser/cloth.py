"""Made-up woven patterns, drawn one at a time, and cut into patches."""

import math

import torch


class Cloth:
    def __init__(self, side: int, patch: int, seed: int) -> None:
        self.side, self.patch = side, patch
        self.rng = torch.Generator().manual_seed(seed)
        line = torch.linspace(0, 1, side)
        self.warp, self.weft = torch.meshgrid(line, line, indexing="ij")

    def draw(self) -> torch.Tensor:
        angle, pitch, ply, shade = torch.rand(4, generator=self.rng).tolist()
        along = math.cos(angle * math.pi) * self.warp + math.sin(angle * math.pi) * self.weft
        across = math.cos(angle * math.pi) * self.weft - math.sin(angle * math.pi) * self.warp
        threads = torch.sin(2 * math.pi * (3 + 6 * pitch) * along) * torch.cos(2 * math.pi * (2 + 4 * ply) * across)
        return 0.8 * threads + 0.4 * (shade - 0.5)

    def batch(self, count: int) -> torch.Tensor:
        """Batch, patches, values of a patch."""
        drawn = torch.stack([self.draw() for _ in range(count)])
        return self.cut(drawn)

    def cut(self, images: torch.Tensor) -> torch.Tensor:
        rows = images.unflatten(2, (-1, self.patch)).unflatten(1, (-1, self.patch))
        return rows.transpose(2, 3).flatten(3).flatten(1, 2)
