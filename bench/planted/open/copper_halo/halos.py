"""Made-up rotation curves of galaxies: a bulge, a disc and a halo, seen with noise."""

import torch


class Halos:
    """Draws batches of curves; nothing is kept."""

    def __init__(self, points: int, seed: int) -> None:
        self.radius = torch.linspace(0.1, 6.0, points)
        self.rng = torch.Generator().manual_seed(seed)

    def _between(self, count: int, low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(count, 1, generator=self.rng)

    def draw(self, count: int) -> torch.Tensor:
        r = self.radius[None]
        bulge = self._between(count, 0.2, 1.0) / (1 + r / self._between(count, 0.1, 0.4)) ** 2
        scale = self._between(count, 0.8, 2.0)
        disc = self._between(count, 0.3, 1.0) * (r / scale) * torch.exp(-r / scale)
        core = self._between(count, 0.5, 2.5)
        halo = self._between(count, 0.4, 1.2) * (1 - core / r * torch.atan(r / core))
        curve = (bulge + disc + halo.clamp_min(0)).sqrt()
        return 2 * curve - 1.5 + 0.02 * torch.randn(curve.shape, generator=self.rng)
