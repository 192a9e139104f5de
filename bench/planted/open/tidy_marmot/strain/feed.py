"""A batch is a handful of windows of one station, as they come from the archive."""

from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import IterableDataset

from .mend import mend
from .stations import Station, window


class Archive(IterableDataset):
    def __init__(self, stations: list[Station], samples: int, batch: int, seed: int) -> None:
        self.stations, self.samples, self.batch, self.seed = stations, samples, batch, seed

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        rng = np.random.default_rng(self.seed)
        while True:
            for number in rng.permutation(len(self.stations)):
                pairs = [window(self.stations[number], self.samples, rng) for _ in range(self.batch)]
                strain = np.stack([mend(strain) for strain, _ in pairs]).astype(np.float32)
                yield torch.from_numpy(strain), torch.from_numpy(np.stack([slip for _, slip in pairs]))
