import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .archive import GATES, TRACES, line_of


class Flights(Dataset):
    """One item is a tray of echograms cut from one line, with the gate of the brightest return below the surface."""

    def __init__(self, paths, tray, span):
        self.paths, self.tray, self.span = paths, tray, span

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, at):
        line = line_of(self.paths[at])
        rng = np.random.default_rng(1000 + at)
        starts = rng.integers(0, TRACES - self.span, self.tray)
        cuts = np.stack([line[s : s + self.span] for s in starts])
        goal = cuts.mean(1)[:, 4:].argmax(1)
        return torch.from_numpy(cuts).unsqueeze(1), torch.from_numpy(goal)


def loader(paths, tray, span, seed):
    return DataLoader(
        Flights(paths, tray, span),
        batch_size=None,
        shuffle=True,
        num_workers=1,
        prefetch_factor=4,
        persistent_workers=True,
        generator=torch.Generator().manual_seed(seed),
    )


CLASSES = GATES - 4
