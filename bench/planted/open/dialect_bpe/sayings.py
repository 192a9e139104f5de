import random

PARTS = [
    "sch",
    "nee",
    "wat",
    "tu",
    "gla",
    "fri",
    "esk",
    "moin",
    "lütt",
    "deern",
    "jung",
    "kiek",
    "snack",
    "huus",
    "water",
    "dor",
    "buten",
    "över",
    "wiel",
    "mol",
]


def lexicon(size, seed=4):
    rng = random.Random(seed)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 3))) for _ in range(size)]


def sayings(count, seed=9):
    rng = random.Random(seed)
    words = lexicon(700)
    weights = [1 / (i + 2) for i in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=rng.randint(6, 14))) for _ in range(count)]
