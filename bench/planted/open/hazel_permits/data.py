"""Permit requests of a town: made from a small grammar, one of six departments each."""

import random

import torch
from torch.utils.data import Dataset

DEPARTMENTS = ["roads", "water", "parks", "building", "noise", "trade"]
WORDS = {
    "roads": "asphalt lane crossing scaffold kerb detour parking bollard crane lorry".split(),
    "water": "well drain culvert sewer meter hydrant pump spring ditch overflow".split(),
    "parks": "tree lawn bench playground hedge kiosk fountain path pond festival".split(),
    "building": "roof storey facade gable balcony garage cellar dormer extension chimney".split(),
    "noise": "concert generator hammer night speaker drill fireworks engine market bells".split(),
    "trade": "stall licence terrace bakery signboard delivery hours counter permit awning".split(),
}
FILLER = "the applicant asks for leave to use and keep a for two weeks from next month near at with of on behalf owner street".split()
VOCAB = {word: i + 2 for i, word in enumerate(sorted({w for ws in WORDS.values() for w in ws} | set(FILLER)))}
PAD, CLS = 0, 1


def write_request(rng: random.Random, length: int) -> tuple[list[int], int]:
    label = rng.randrange(len(DEPARTMENTS))
    ids = [CLS]
    for _ in range(length - 1):
        draw = rng.random()
        source = WORDS[DEPARTMENTS[label]] if draw < 0.12 else WORDS[rng.choice(DEPARTMENTS)] if draw < 0.2 else FILLER
        ids.append(VOCAB[rng.choice(source)])
    return ids, label


class Requests(Dataset):
    def __init__(self, count: int, length: int, seed: int) -> None:
        rng = random.Random(seed)
        rows = [write_request(rng, length) for _ in range(count)]
        self.ids = torch.tensor([ids for ids, _ in rows])
        self.labels = torch.tensor([label for _, label in rows])

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> dict:
        return {"input_ids": self.ids[i], "labels": self.labels[i]}
