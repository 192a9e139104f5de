"""Camera trap photos of martens: the throat patch tells the animals apart."""

import torch


class Traps:
    """Each animal has a patch; a view of it is moved, lit and noisy."""

    def __init__(self, animals: int, size: int, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.size = size
        self.codes = torch.randn(animals, 6, generator=self.generator)
        axis = torch.linspace(-1, 1, size)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        waves = [torch.sin(3 * x), torch.cos(3 * y), torch.sin(5 * (x + y)), torch.cos(5 * (x - y)), torch.sin(8 * x * y), torch.cos(7 * x)]
        self.waves = torch.stack(waves)

    def __len__(self) -> int:
        return len(self.codes)

    def views(self, numbers: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        patches = torch.einsum("nk,kyx->nyx", self.codes[numbers], self.waves)[:, None]
        return self._view(patches), self._view(patches)

    def _view(self, patches: torch.Tensor) -> torch.Tensor:
        light = 0.7 + 0.6 * torch.rand(len(patches), 1, 1, 1, generator=self.generator)
        dx, dy = torch.randint(-3, 4, (2,), generator=self.generator).tolist()
        moved = torch.roll(patches, (dy, dx), dims=(2, 3))
        return light * moved + 0.3 * torch.randn(moved.shape, generator=self.generator)
