"""Short field notes with now and then a long one; the season has to be told from the words."""

import random

SEASONS = ["spring", "summer", "autumn", "winter"]
CUES = {
    "spring": "bud thaw nest seedling lambs drizzle blossom sap".split(),
    "summer": "heat dust swallow thunder hay cicada drought shade".split(),
    "autumn": "acorn mist fungus geese rust gale harvest cider".split(),
    "winter": "frost ice rime owl snow hush ember wool".split(),
}
PLAIN = "we walked past the lower field and saw by a gate some near water then back along ridge no wind few people path old".split()


def write_notes(count: int, seed: int) -> list[tuple[str, int]]:
    rng = random.Random(seed)
    notes = []
    for _ in range(count):
        season = rng.randrange(len(SEASONS))
        length = min(240, 12 + int(rng.expovariate(1 / 12)))
        words = [rng.choice(CUES[SEASONS[season]]) if rng.random() < 0.15 else rng.choice(PLAIN) for _ in range(length)]
        notes.append((" ".join(words), season))
    return notes
