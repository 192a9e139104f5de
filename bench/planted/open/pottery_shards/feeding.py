"""How the data reaches the trainer."""

import os
from dataclasses import dataclass

from shards import EpochOrder, Shards
from torch.utils.data import DataLoader

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Feed:
    """Settings of the loader; `spawn`, because the photo library of the department must not be forked."""

    count: int
    size: int = 48
    batch_size: int = 32
    workers: int = 2
    prefetch: int = 4
    context: str = "spawn"
    seed: int = 17

    def open(self) -> "FeedReader":
        return FeedReader(self)


class FeedReader:
    def __init__(self, feed: Feed) -> None:
        self.order = EpochOrder(feed.count, feed.seed)
        self.loader = DataLoader(
            Shards(feed.count, feed.size, feed.seed),
            batch_size=feed.batch_size,
            sampler=self.order,
            num_workers=feed.workers,
            prefetch_factor=feed.prefetch,
            multiprocessing_context=feed.context,
            persistent_workers=FIXED,
            drop_last=True,
        )

    def __len__(self) -> int:
        return len(self.loader)

    def epoch(self, number: int):
        self.order.epoch = number
        yield from self.loader
