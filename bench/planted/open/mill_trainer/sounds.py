import torch
from torch.utils.data import Dataset


class MillSounds(Dataset):
    """Frames of sound from water mills as 40-band spectra, in memory; the label is the state of the stones."""

    def __init__(self, count: int, frames: int = 64, seed: int = 0):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 5, (count,), generator=g)
        shapes = torch.randn(5, 1, 40, generator=torch.Generator().manual_seed(99))
        beat = torch.sin(torch.arange(frames) * (0.2 + 0.1 * self.labels[:, None]))[..., None]
        self.inputs = torch.randn(count, frames, 40, generator=g) * 1.5 + shapes[self.labels] * beat

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"sound": self.inputs[i], "labels": self.labels[i]}
