"""Medieval charters in formulaic Latin, as characters."""

import random

import torch
from torch.utils.data import Dataset

OPENING = ["in nomine sancte et individue trinitatis", "notum sit omnibus tam presentibus quam futuris", "ego dei gratia"]
GIFT = [
    "dono et concedo",
    "in perpetuum",
    "cum omnibus pertinentiis",
    "terram et silvam",
    "molendinum",
    "ecclesie sancti petri",
    "decem solidos",
]
CLOSE = ["huius rei testes sunt", "actum est hoc anno", "sigilli mei munimine roboravi", "valete"]
LETTERS = " abcdefghijklmnopqrstuvwxyz.,"


def charter(rng: random.Random) -> str:
    parts = [rng.choice(OPENING)] + rng.choices(GIFT, k=rng.randint(30, 50)) + [rng.choice(CLOSE)]
    return ", ".join(parts) + ". "


class Charters(Dataset):
    def __init__(self, count: int, length: int, seed: int):
        rng = random.Random(seed)
        index = {c: i for i, c in enumerate(LETTERS)}
        self.rows = []
        for _ in range(count):
            text = ""
            while len(text) < length:
                text += charter(rng)
            self.rows.append(torch.tensor([index[c] for c in text[:length]]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}
