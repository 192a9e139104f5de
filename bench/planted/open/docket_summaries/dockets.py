"""Court dockets: short entries with the matter that they belong to."""

import random

MATTERS = ("tenancy", "custody", "insolvency", "patent", "traffic", "pension", "zoning", "tort")
COMMON = ("the", "court", "orders", "that", "party", "of", "motion", "filed", "hearing", "on", "counsel", "granted", "denied", "stay")


def make(count: int, seed: int) -> list[tuple[str, int]]:
    rng = random.Random(seed)
    entries = []
    for _ in range(count):
        matter = rng.randrange(len(MATTERS))
        special = [f"{MATTERS[matter]}{rng.randrange(40)}" for _ in range(rng.randrange(3, 9))]
        words = special + rng.choices(COMMON, k=rng.randrange(8, 40))
        rng.shuffle(words)
        entries.append((" ".join(words), matter))
    return entries
