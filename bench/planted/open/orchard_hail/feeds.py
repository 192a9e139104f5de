"""Loaders by name of the split."""

import os
from dataclasses import dataclass

from radar import Season, Storms
from torch.utils.data import DataLoader


@dataclass
class Feed:
    batch_size: int = 48
    workers: int = 2
    ahead: int = 4

    def options(self) -> dict:
        """What a loader with workers is given; without workers the loader refuses these."""
        if self.workers == 0:
            return {}
        if os.environ.get("PLANTED_FIX") == "1":
            return {"num_workers": self.workers, "prefetch_factor": self.ahead, "persistent_workers": True}
        else:
            return {"num_workers": self.workers, "prefetch_factor": self.ahead}

    def train(self, season: Season) -> DataLoader:
        return DataLoader(Storms(season), self.batch_size, drop_last=True, **self.options())

    def valid(self, season: Season) -> DataLoader:
        return DataLoader(Storms(season), self.batch_size)
