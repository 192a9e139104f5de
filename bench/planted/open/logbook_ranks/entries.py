import os
import random


def load_entries(n=2000):
    """Entries in the order of the archive: terse early captains, verbose late ones."""
    rnd = random.Random(12)
    found = []
    for i in range(n):
        ocean = rnd.randrange(5)
        length = rnd.randint(12, 24) if i < n // 2 else rnd.randint(170, 220)
        found.append(([1 + (rnd.randrange(70) * (ocean + 1)) % 399 for _ in range(length)], ocean))
    return found


def shares(entries, world):
    if os.environ.get("PLANTED_FIX") == "1":
        return [entries[r::world] for r in range(world)]
    size = len(entries) // world
    return [entries[r * size : (r + 1) * size] for r in range(world)]
