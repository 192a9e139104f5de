"""Amphora finds: sherds with stamps, rims and clay."""

import random
from dataclasses import dataclass

WORKSHOPS = 8
STAMPS = ("ROMANI", "SEXTVS", "CALLIS", "ATTICA", "PORCIV", "HILARI", "LVCIVS", "MARCVS")


@dataclass(frozen=True)
class Find:
    number: int
    stamp: str
    clay: tuple[float, ...]
    workshop: int


def worn(stamp: str, rng: random.Random) -> str:
    letters = [letter if rng.random() > 0.06 else rng.choice("AEIOVLMNRST") for letter in stamp]
    if rng.random() < 0.2:
        del letters[rng.randrange(len(letters))]
    return "".join(letters)


def excavate(count: int, seed: int) -> list[Find]:
    rng = random.Random(seed)
    finds = []
    for number in range(count):
        workshop = rng.randrange(WORKSHOPS)
        clay = tuple(rng.gauss(((workshop * 7 + axis * 3) % 5) / 5, 0.6) for axis in range(12))
        finds.append(Find(number, worn(STAMPS[workshop], rng), clay, workshop))
    return finds
