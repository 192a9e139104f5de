"""Lines of ballads from a small grammar, as characters."""

import random

import torch
from torch.utils.data import Dataset

WHO = ["the miller", "young Tam", "the queen", "a sailor", "fair Ellen", "the king's son"]
DID = ["rode out", "sat weeping", "came home", "sang low", "lay dead", "went down"]
WHERE = ["by the river", "at the mill", "over the sea", "in the greenwood", "before the dawn", "under the hill"]
LETTERS = sorted(set(" ,.'" + "".join(WHO + DID + WHERE)))


def stanza(rng: random.Random) -> str:
    return " ".join(f"{rng.choice(WHO)} {rng.choice(DID)} {rng.choice(WHERE)}{rng.choice(',.')}" for _ in range(6))


class Stanzas(Dataset):
    def __init__(self, count: int, length: int, seed: int) -> None:
        rng = random.Random(seed)
        number = {letter: index for index, letter in enumerate(LETTERS)}
        self.rows = []
        for _ in range(count):
            text = stanza(rng)
            while len(text) <= length:
                text += " " + stanza(rng)
            self.rows.append(torch.tensor([number[letter] for letter in text[:length]]))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}
