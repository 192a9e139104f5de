"""Made-up radar: blobs of rain that drift and fade over a square field."""

import torch
from torch.utils.data import Dataset


class Radar(Dataset):
    """[frame, side, side] sequences, the last frame to be foretold."""

    def __init__(self, sequences: int, frames: int, side: int, blobs: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        axis = torch.linspace(0, 1, side)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        made = []
        for _ in range(sequences):
            place, drift = torch.rand(blobs, 2, generator=generator), 0.08 * torch.randn(1, 2, generator=generator)
            size = 0.03 + 0.08 * torch.rand(blobs, generator=generator)
            strength = torch.rand(blobs, generator=generator)
            frame = []
            for moment in range(frames + 1):
                at = (place + moment * drift) % 1
                far = (y[None] - at[:, 0, None, None]) ** 2 + (x[None] - at[:, 1, None, None]) ** 2
                frame.append((strength[:, None, None] * torch.exp(-far / (2 * size[:, None, None] ** 2))).sum(0))
            made.append(torch.stack(frame))
        self.fields = torch.stack(made)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.fields[number, :-1], self.fields[number, -1]
