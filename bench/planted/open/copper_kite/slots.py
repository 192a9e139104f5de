"""Made-up orders at a counter, with a slot label for each word."""

import random
import zlib

import torch
from torch.utils.data import Dataset

LABELS = ["O", "COUNT", "SIZE", "ITEM", "EXTRA"]
COUNTS = "one two three four five a another".split()
SIZES = "small medium large huge tiny regular".split()
ITEMS = "tea coffee bagel soup salad wrap juice muffin cookie toast".split()
EXTRAS = "milk sugar cheese lemon butter jam honey pepper".split()
ROWS = 40_000
FILLERS = "please could i have get me and with also thanks some maybe then".split()


def bucket(word: str) -> int:
    """The row of a word in the table of word vectors."""
    return zlib.crc32(word.encode()) % ROWS


class Orders(Dataset):
    """All orders have the same number of words, so nothing is padded."""

    def __init__(self, size: int, length: int, seed: int) -> None:
        rng = random.Random(seed)
        self.words, self.slots = [], []
        for _ in range(size):
            order = self._order(rng, length)
            heard = ["<unk>" if rng.random() < 0.1 else word for word, _ in order]
            self.words.append(torch.tensor([bucket(word) for word in heard]))
            self.slots.append(torch.tensor([LABELS.index(label) for _, label in order]))

    @staticmethod
    def _order(rng: random.Random, length: int) -> list[tuple[str, str]]:
        order: list[tuple[str, str]] = []
        while len(order) < length:
            order += [(rng.choice(FILLERS), "O") for _ in range(rng.randrange(1, 4))]
            order.append((rng.choice(COUNTS), "COUNT"))
            if rng.random() < 0.6:
                order.append((rng.choice(SIZES), "SIZE"))
            order.append((rng.choice(ITEMS), "ITEM"))
            if rng.random() < 0.5:
                order += [("with", "O"), (rng.choice(EXTRAS), "EXTRA")]
        return order[:length]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.words[index], "labels": self.slots[index]}
