"""Made-up reviews: words drawn from a topic, a star rating from the mood words among them."""

import random

GOOD = ["fine", "lovely", "crisp", "bright", "warm", "tasty", "quick", "kind"]
BAD = ["bland", "late", "cold", "rude", "stale", "dull", "burnt", "noisy"]
FILL = [f"w{i}" for i in range(900)]


def review(rng: random.Random) -> tuple[str, int]:
    stars = rng.randrange(5)
    length = min(max(int(rng.gauss(24, 8)), 6), 48)
    words = []
    for _ in range(length):
        if rng.random() < 0.3:
            words.append(rng.choice(GOOD if rng.random() < stars / 4 else BAD))
        else:
            words.append(rng.choice(FILL))
    return " ".join(words), stars


def reviews(count: int, seed: int) -> list[tuple[str, int]]:
    rng = random.Random(seed)
    return [review(rng) for _ in range(count)]
