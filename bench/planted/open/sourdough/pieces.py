"""A small word-piece vocabulary with greedy longest match, and a made-up cook book to train on."""

import os
from functools import lru_cache

import numpy as np

STEMS = "knead flour water salt rise fold bake crust crumb starter levain bowl rest shape oven steam score dough loaf warm cool weigh mix".split()
ENDINGS = ["", "ed", "ing", "s", "er", "ly"]
FILLER = "the a until then and of with for in into on minutes grams hours again gently slowly".split()


def chapter(seed: int, words: int = 1500) -> str:
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(words):
        if rng.random() < 0.45:
            out.append(FILLER[rng.integers(len(FILLER))])
        else:
            out.append(STEMS[min(int(rng.exponential(6)), len(STEMS) - 1)] + ENDINGS[rng.integers(len(ENDINGS))])
        if rng.random() < 0.08:
            out[-1] += "."
    return " ".join(out)


class Pieces:
    def __init__(self) -> None:
        letters = list("abcdefghijklmnopqrstuvwxyz. ")
        tokens = letters + [w for w in STEMS + FILLER if len(w) > 1] + [e for e in ENDINGS if len(e) > 1]
        self.tokens = list(dict.fromkeys(tokens))
        self.index = {token: i for i, token in enumerate(self.tokens)}
        self.longest = max(map(len, self.tokens))
        if os.environ.get("PLANTED_FIX") == "1":
            self.encode = lru_cache(maxsize=None)(self.encode)

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        ids, at = [], 0
        while at < len(text):
            for size in range(min(self.longest, len(text) - at), 0, -1):
                found = self.index.get(text[at : at + size])
                if found is not None:
                    ids.append(found)
                    at += size
                    break
            else:
                at += 1
        return ids

    def decode(self, ids: list[int]) -> str:
        return "".join(self.tokens[i] for i in ids)
