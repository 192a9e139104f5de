import torch


def clouds(count: int, side: int, seed: int) -> torch.Tensor:
    """Smooth random fields in [-1, 1]."""
    g = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 1, 5, 5, generator=g)
    fields = torch.nn.functional.interpolate(coarse, size=(side, side), mode="bicubic", align_corners=True)
    return fields.clamp(-2, 2) / 2


class Schedule:
    """A cosine schedule of noise."""

    def __init__(self, steps: int):
        t = torch.linspace(0, 1, steps + 1)
        bar = torch.cos((t + 0.008) / 1.008 * torch.pi / 2) ** 2
        self.bar = (bar / bar[0])[1:].clamp(1e-4, 0.9999)
        self.steps = steps

    def noisy(self, x: torch.Tensor, t: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        bar = self.bar[t][:, None, None, None]
        return bar.sqrt() * x + (1 - bar).sqrt() * noise
