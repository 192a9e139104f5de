"""Three bodies in the plane, softened, integrated by leapfrog: the truth to learn from."""

import torch


def acceleration(place: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
    gap = place[:, None] - place[:, :, None]
    strength = (gap.square().sum(-1, keepdim=True) + 0.3).pow(-1.5)
    return (gap * strength * mass[None, None, :, None]).sum(2)


def truth(count: int, points: int, dt: float, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    mass = torch.tensor([1.0, 0.6, 0.3])
    place = torch.randn(count, 3, 2, generator=generator)
    speed = 0.4 * torch.randn(count, 3, 2, generator=generator)
    rows = []
    for _ in range(points):
        rows.append(torch.cat([place, speed], -1).flatten(1))
        for _ in range(4):
            speed = speed + 0.5 * dt / 4 * acceleration(place, mass)
            place = place + dt / 4 * speed
            speed = speed + 0.5 * dt / 4 * acceleration(place, mass)
    return torch.stack(rows, 1)
