"""Parish registers: baptisms with parents, godparents and places, as nested records."""

import random

NAMES = "Anna Maria Johann Georg Peter Elisabeth Barbara Hans Michael Katharina Jakob Ursula Adam Eva Martin Sophia".split()
FAMILIES = "Müller Weber Schmid Bauer Fischer Huber Kaiser Vogel Lang Roth Zimmermann Schreiber".split()
PLACES = "Au Berg Dorf Eich Feld Grub Hof Kirch Moos Neustadt Stein Wald".split()
TRADES = "miller weaver smith farmer fisher tailor cooper carpenter".split()


def person(rng):
    return {
        "name": rng.choice(NAMES),
        "family": rng.choice(FAMILIES),
        "trade": rng.choice(TRADES),
        "lives": {"place": rng.choice(PLACES), "house": rng.randrange(60)},
    }


def record(rng):
    father, mother = person(rng), person(rng)
    child = {"name": rng.choice(NAMES), "family": father["family"]}
    return {
        "child": child,
        "father": father,
        "mother": mother,
        "witnesses": [person(rng) for _ in range(rng.randint(1, 3))],
        "date": [rng.randrange(1, 29), rng.randrange(1, 13), rng.randrange(1680, 1790)],
    }


def registers(count, seed=1701):
    rng = random.Random(seed)
    return [record(rng) for _ in range(count)]


def same_family(a, b):
    """Whether two baptisms are likely those of siblings."""
    return int(a["father"]["family"] == b["father"]["family"] and abs(a["date"][2] - b["date"][2]) < 25)
