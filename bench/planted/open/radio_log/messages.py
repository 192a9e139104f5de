"""Radio traffic of a coast guard station: short calls, now and then a long report. Which are urgent?"""

import random

CALLS = "alpha bravo delta echo foxtrot harbour pilot buoy ferry tug trawler yacht cargo lifeboat beacon".split()
CALM = "position speed weather fine arriving berth request clear routine report visibility good wind light over".split()
ALARM = "mayday fire flooding engine failure overboard injured drifting collision sinking help".split()


def call(rng: random.Random) -> tuple[list[str], int]:
    urgent = rng.random() < 0.4
    length = max(6, min(190, int(rng.lognormvariate(3.0, 0.55))))
    words = [rng.choice(CALLS)] + rng.choices(CALM, k=length - 1)
    if urgent:
        for _ in range(1 + length // 20):
            words[rng.randrange(1, length)] = rng.choice(ALARM)
    elif rng.random() < 0.3:
        words[rng.randrange(1, length)] = rng.choice(ALARM)
        words[-1] = "cancelled"
    return words, int(urgent)


def log_book(count: int, seed: int = 77):
    rng = random.Random(seed)
    return [call(rng) for _ in range(count)]


class Vocabulary:
    def __init__(self, log):
        words = sorted({w for words, _ in log for w in words})
        self.index = {w: i + 1 for i, w in enumerate(words)}

    def __len__(self):
        return len(self.index) + 1

    def __call__(self, words):
        return [self.index[w] for w in words]
