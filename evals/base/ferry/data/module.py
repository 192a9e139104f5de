"""Everything about data that a session needs: vocabulary, datasets and loaders of both splits."""

from __future__ import annotations

import random
from pathlib import Path

from torch.utils.data import DataLoader

from ferry.config import DataConfig
from ferry.data.batches import Collate
from ferry.data.datasets import TicketDataset
from ferry.data.records import TicketFile, split_path
from ferry.data.sampling import EpochSampler
from ferry.data.text import Pipeline
from ferry.data.vocabulary import Vocabulary


class DataModule:
    def __init__(self, config: DataConfig, seed: int, rank: int = 0, ranks: int = 1) -> None:
        self.config = config
        self.seed = seed
        folder = Path(config.folder)
        self.train_file = TicketFile(split_path(folder, "train"))
        self.valid_file = TicketFile(split_path(folder, "valid"))
        self.vocabulary = self._vocabulary()
        self.sampler = EpochSampler(len(self.train_file), seed, rank, ranks)

    def _vocabulary(self) -> Vocabulary:
        plain = Pipeline(self.config.transforms, 0.0, training=False)
        generator = random.Random(0)
        texts = (plain(ticket.text, generator) for ticket in self.train_file)
        return Vocabulary.build(texts, self.config.min_count, self.config.max_vocabulary)

    def dataset(self, split: str) -> TicketDataset:
        training = split == "train"
        pipeline = Pipeline(self.config.transforms, self.config.drop_rate, training)
        file = self.train_file if training else self.valid_file
        return TicketDataset(file, self.vocabulary, pipeline, self.config.max_length, self.seed)

    def train_loader(self) -> DataLoader:
        return DataLoader(
            self.dataset("train"),
            batch_size=self.config.batch_size,
            sampler=self.sampler,
            num_workers=self.config.workers,
            pin_memory=self.config.pin_memory,
            persistent_workers=False,  # workers must see the epoch's number
            collate_fn=Collate(self.config.max_length),
            drop_last=True,
        )

    def valid_loader(self) -> DataLoader:
        return DataLoader(
            self.dataset("valid"),
            batch_size=self.config.eval_batch_size,
            shuffle=False,
            num_workers=0,
            collate_fn=Collate(self.config.max_length),
        )
