"""Images of fields before and after harvest, in eight states."""

import torch

STATES = 8


def images(count: int, size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(STATES, (count,), generator=generator)
    axis = torch.linspace(0, 1, size)
    furrows = torch.sin(axis[None, None, :] * (6 + 5 * labels[:, None, None]) + axis[None, :, None] * labels[:, None, None])
    colour = torch.rand(count, 3, 1, 1, generator=generator) * 0.5 + 0.5
    return colour * furrows[:, None] + 0.4 * torch.randn(count, 3, size, size, generator=generator), labels


class Feeder:
    """Shuffled batches without end."""

    def __init__(self, pixels: torch.Tensor, labels: torch.Tensor, batch_size: int, seed: int) -> None:
        self.pixels, self.labels, self.batch_size = pixels, labels, batch_size
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            for rows in torch.randperm(len(self.labels), generator=self.generator).split(self.batch_size):
                yield self.pixels[rows], self.labels[rows]
