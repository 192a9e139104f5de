"""Made-up ingredient lines, each word with a tag: amount, unit, name, state or nothing."""

import random

AMOUNTS = [str(n) for n in range(1, 60)] + ["half", "quarter", "dozen", "pinch"]
UNITS = ["g", "kg", "ml", "l", "cup", "cups", "tbsp", "tsp", "slice", "clove", "tin", "bunch"]
NAMES = [
    a + b
    for a in ("bra", "fen", "gol", "mar", "pel", "sor", "tur", "wil", "zan")
    for b in ("del", "nip", "ric", "rot", "sage", "ton", "vy")
]
STATES = ["chopped", "peeled", "ripe", "dried", "grated", "soft", "warm", "whole"]
FILLERS = ["of", "and", "the", "with", "to", "taste", ",", "or", "about", "more"]
TAGS = ["nothing", "amount", "unit", "name", "state"]
WORDS = AMOUNTS + UNITS + NAMES + STATES + FILLERS


def line(rng: random.Random) -> list[tuple[str, int]]:
    words = [(rng.choice(AMOUNTS), 1), (rng.choice(UNITS), 2)]
    if rng.random() < 0.5:
        words.append(("of", 0))
    words += [(rng.choice(STATES), 4) for _ in range(rng.randrange(3))]
    words.append((rng.choice(NAMES), 3))
    return words + [(rng.choice(FILLERS), 0) for _ in range(rng.randrange(3))]


def recipe(rng: random.Random) -> tuple[list[str], list[int]]:
    words = [pair for _ in range(rng.randrange(6, 18)) for pair in line(rng)]
    return [word for word, _ in words], [tag for _, tag in words]
