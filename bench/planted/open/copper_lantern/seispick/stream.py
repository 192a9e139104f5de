"""An endless stream of training windows from the archive."""

import numpy as np
import torch
from torch.utils.data import IterableDataset

from seispick.archive import Archive, Record


class Windows(IterableDataset):
    def __init__(self, archive: Archive, width: int, stride: int, seed: int) -> None:
        self.archive, self.width, self.stride, self.seed = archive, width, stride, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        while True:
            for number in rng.permutation(len(self.archive.records)):
                yield self.window(self.archive.records[number], rng)

    def window(self, record: Record, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        counts = self.archive.waveform(record)
        lead = int(rng.integers(self.width // 8, 7 * self.width // 8))
        begin = min(max(record.onset - lead, 0), self.archive.length - self.width)
        view = counts[:, begin : begin + self.width].astype(np.float32)
        view -= view.mean(axis=1, keepdims=True)
        view /= view.std() + 1.0
        return torch.from_numpy(view), torch.tensor((record.onset - begin) // self.stride)
