"""Tickets as examples: numbers of words, the queue, the urgency."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torch.utils.data import Dataset

from ferry.data.records import TicketFile
from ferry.data.text import Pipeline
from ferry.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class Example:
    tokens: list[int]
    queue: int
    urgency: float
    index: int


class TicketDataset(Dataset):
    """One split. Randomness of an example depends on seed, epoch and index alone, so that workers cannot change it."""

    def __init__(self, file: TicketFile, vocabulary: Vocabulary, pipeline: Pipeline, max_length: int, seed: int) -> None:
        self.file = file
        self.vocabulary = vocabulary
        self.pipeline = pipeline
        self.max_length = max_length
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.file)

    def __getitem__(self, index: int) -> Example:
        ticket = self.file[index]
        generator = random.Random(self.seed * 1_000_003 + self.epoch * 7_919 + index)
        words = self.pipeline(ticket.text, generator)
        return Example(self.vocabulary.encode(words, self.max_length), ticket.queue, ticket.urgency, index)
