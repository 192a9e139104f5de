"""Pictures of 12 x 12: rings, bars and blots."""
import torch


def draw(count, seed, size=12):
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(3, (count,), generator=generator)
    place = torch.rand(count, 3, generator=generator)
    axis = torch.arange(size).float()
    pictures = []
    for kind, (a, b, c) in zip(label.tolist(), place.tolist()):
        y, x = torch.meshgrid(axis - 3 - 6 * a, axis - 3 - 6 * b, indexing="ij")
        if kind == 0:
            picture = torch.exp(-((x.square() + y.square()).sqrt() - 2 - 2 * c).square())
        elif kind == 1:
            picture = torch.exp(-(x * (0.3 + c) + y * (1 - c)).square())
        else:
            picture = torch.exp(-(x.square() + y.square()) / (2 + 6 * c))
        pictures.append(2 * picture[None] - 1)
    return torch.stack(pictures), label
