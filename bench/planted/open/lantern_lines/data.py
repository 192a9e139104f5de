"""Inscriptions on paper lanterns: riddles, from a grammar."""

import random

import torch

NOUNS = "moon river crane lantern pine gate bridge snow tea monk boat rain".split()
VERBS = "waits sings falls burns drifts returns sleeps bends".split()
WORDS = ["<", ">", "?", "the", "old", "who", "where", "under", "beside", *NOUNS, *VERBS]


def riddles(seed: int):
    rng = random.Random(seed)
    number = {word: index for index, word in enumerate(WORDS)}
    while True:
        noun, other = rng.sample(NOUNS, 2)
        words = ["<", rng.choice(["who", "where"]), rng.choice(VERBS), rng.choice(["under", "beside"]), "the", other, "?", "the"]
        if rng.random() < 0.5:
            words.append("old")
        yield from (number[word] for word in [*words, noun, ">"])


def sequences(length: int, seed: int):
    """Rows of `length + 1` tokens."""
    stream, row = riddles(seed), []
    for token in stream:
        row.append(token)
        if len(row) == length + 1:
            yield torch.tensor(row)
            row = row[-1:]


def micro_batches(length: int, size: int, seed: int):
    rows = sequences(length, seed)
    while True:
        batch = torch.stack([next(rows) for _ in range(size)])
        yield batch[:, :-1], batch[:, 1:]
