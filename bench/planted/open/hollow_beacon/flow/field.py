"""Ice surface patches and the speed of the ice below them, made up from smooth bumps."""

import torch


def patches(count: int, side: int, channels: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    dice = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, side)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    slope = torch.randn(count, channels, 2, generator=dice)
    bend = torch.randn(count, channels, 1, 1, generator=dice)
    surface = slope[..., 0, None, None] * x + slope[..., 1, None, None] * y + bend * x * y
    surface = surface + 0.1 * torch.randn(surface.shape, generator=dice)
    speed = torch.stack([(slope[:, 0] * slope[:, 1]).sum(-1), bend[:, 2, 0, 0] * slope[:, 2, 0]], dim=1)
    return surface.flatten(1), speed


class Share:
    """The part of the patches that belongs to one rank, shuffled anew for each pass."""

    def __init__(self, data: tuple[torch.Tensor, torch.Tensor], rank: int, world: int, batch: int) -> None:
        self.surface, self.speed = (part[rank::world].contiguous() for part in data)
        self.batch, self.dice = batch, torch.Generator().manual_seed(100 + rank)

    def __iter__(self):
        while True:
            for rows in torch.randperm(len(self.speed), generator=self.dice).split(self.batch):
                if len(rows) == self.batch:
                    yield self.surface[rows], self.speed[rows]
