"""Vertical wind profiles with a jet, a shear layer and turbulence."""

import torch


def profiles(count: int, levels: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    z = torch.linspace(0, 1, levels)
    height, strength, shear, turn = torch.rand(4, count, 1, generator=generator)
    jet = (0.5 + strength) * torch.exp(-(((z - 0.2 - 0.6 * height) / 0.12) ** 2))
    base = shear * torch.log1p(8 * z)
    noise = torch.randn(count, 2, levels, generator=generator) * 0.05
    east = (jet + base) * torch.cos(turn * 3 * z)
    north = (jet + base) * torch.sin(turn * 3 * z)
    both = torch.stack([east, north], 1) + noise
    return ((both - both.mean()) / both.std()).flatten(1)


class Draw:
    def __init__(self, data: torch.Tensor, batch: int, seed: int):
        self.data, self.batch = data, batch
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            order = torch.randperm(len(self.data), generator=self.generator)
            yield from (self.data[part] for part in order.split(self.batch) if len(part) == self.batch)
