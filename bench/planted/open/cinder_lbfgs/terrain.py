"""A cinder cone: heights at survey points, and the smooth surface behind them."""

import torch


def cone(points: torch.Tensor) -> torch.Tensor:
    radius = (points - torch.tensor([0.1, -0.2], dtype=points.dtype)).norm(dim=1)
    rim = torch.exp(-((radius - 0.35) ** 2) / 0.02)
    return 0.8 * rim + 0.3 * torch.exp(-radius / 0.5) + 0.05 * torch.sin(9 * points[:, 0]) * torch.cos(7 * points[:, 1])


def survey(count: int, seed: int, noise: float = 0.01) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(count, 2, generator=generator, dtype=torch.float64) * 2 - 1
    heights = cone(points) + noise * torch.randn(count, generator=generator, dtype=torch.float64)
    return points, heights
