"""Notes of lock keepers, sorted by what they ask of the office."""

import random

import torch
from torch.utils.data import Dataset

TOPICS = {
    "repair": "gate paddle leak hinge rust beam seal broken winch crack".split(),
    "traffic": "boat barge queue waiting convoy passage delay narrow mooring turn".split(),
    "water": "level flood low drought weir flow pump inch rising frozen".split(),
    "staff": "shift leave keeper sick relief wages cottage holiday rota training".split(),
}
COMMON = "the a at lock bridge today since morning please send again third upper lower north we need is was very".split()
WORDS = ["[PAD]", "[CLS]"] + COMMON + [w for words in TOPICS.values() for w in words]
INDEX = {w: i for i, w in enumerate(WORDS)}


class Notes(Dataset):
    def __init__(self, count: int, seed: int, length: int = 32):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(count):
            label = rng.randrange(len(TOPICS))
            own = list(TOPICS.values())[label]
            other = list(TOPICS.values())[rng.randrange(len(TOPICS))]
            words = ["[CLS]"] + [
                rng.choice(own if rng.random() < 0.12 else other if rng.random() < 0.1 else COMMON) for _ in range(length - 1)
            ]
            self.rows.append({"input_ids": torch.tensor([INDEX[w] for w in words]), "labels": label})

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> dict:
        return self.rows[i]
