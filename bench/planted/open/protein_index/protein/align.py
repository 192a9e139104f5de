import os

FAST = os.environ.get("PLANTED_FIX") == "1"
LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def family(count, length, rng):
    root = [rng.choice(LETTERS) for _ in range(length)]
    return ["".join(rng.choice(LETTERS) if rng.random() < 0.3 else c for c in root) for _ in range(count)]


def local_score(a, b):
    """Smith-Waterman with a linear gap."""
    previous, best = [0] * (len(b) + 1), 0
    for x in a:
        current = [0]
        for j, y in enumerate(b, 1):
            current.append(max(0, previous[j - 1] + (3 if x == y else -2), previous[j] - 2, current[j - 1] - 2))
        best = max(best, *current)
        previous = current
    return best
