"""A corpus of tunes in ABC-like notation, one text file, made up by a small grammar."""
import os
import random

KEYS = {"D": "DEFGABcd", "G": "GABcdefg", "A": "ABcdefga", "Em": "EFGABcde"}
METERS = {"6/8": 6, "4/4": 8, "3/4": 6}


def bar(rng, scale, length, at):
    notes, left = [], length
    while left > 0:
        at = max(0, min(len(scale) - 1, at + rng.choice([-2, -1, -1, 0, 1, 1, 2])))
        d = min(left, rng.choice([1, 1, 1, 2, 2, 3]))
        notes.append(scale[at] + (str(d) if d > 1 else ""))
        left -= d
    return "".join(notes), at


def tune(rng, number):
    key, meter = rng.choice(list(KEYS)), rng.choice(list(METERS))
    lines = []
    for _ in range(2):
        at, bars = rng.randrange(4), []
        for _ in range(4):
            text, at = bar(rng, KEYS[key], METERS[meter], at)
            bars.append(text)
        second = bars[:2] + [bar(rng, KEYS[key], METERS[meter], at)[0], KEYS[key][0] + str(METERS[meter])]
        lines.append("|:" + "|".join(bars) + "|" + "|".join(second) + ":|")
    return f"X:{number}\nM:{meter}\nK:{key}\n" + "\n".join(lines) + "\n\n"


def ensure(path="data/tunes.abc", n=3500, seed=4):
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rng = random.Random(seed)
        with open(path, "w") as f:
            f.write("".join(tune(rng, i + 1) for i in range(n)))
    with open(path) as f:
        return f.read()
