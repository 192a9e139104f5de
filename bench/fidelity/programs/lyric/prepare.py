"""Writes data/train.bin and data/val.bin: lines of a small invented song language, one uint16 per character."""
import os
import random

import numpy as np

CHARS = "\n abcdefghijklmnopqrstuvwxyz,."
NOUNS = "river lantern sparrow harbour winter meadow candle stranger mountain orchard".split()
VERBS = "carries follows remembers gathers forgets answers wakes".split()
ADJECTIVES = "quiet silver hollow early distant burning patient".split()


def line(rng):
    a, b = rng.sample(NOUNS, 2)
    words = ["the", rng.choice(ADJECTIVES), a, rng.choice(VERBS), "the", b]
    if rng.random() < 0.4:
        words[-1] += ","
        words += ["and", "the", rng.choice(NOUNS), "sleeps"]
    return " ".join(words) + ".\n"


def prepare(folder):
    os.makedirs(folder, exist_ok=True)
    ids = {char: number for number, char in enumerate(CHARS)}
    rng = random.Random(1337)
    for split, lines in (("train", 1200), ("val", 200)):
        text = "".join(line(rng) for _ in range(lines))
        np.array([ids[char] for char in text], dtype=np.uint16).tofile(os.path.join(folder, f"{split}.bin"))
    return len(CHARS)


if __name__ == "__main__":
    print(prepare("data"))
