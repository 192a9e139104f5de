"""Made-up helpdesk tickets: each queue has words of its own among common ones."""

import random

QUEUES = ["billing", "shipping", "returns", "accounts", "hardware", "outage"]


def _lexicon(rng, count):
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    words = set()
    while len(words) < count:
        words.add("".join(rng.choice(syllables) for _ in range(rng.randint(2, 4))))
    return sorted(words)


def make_tickets(count, seed):
    rng = random.Random(seed)
    lexicon = _lexicon(random.Random(99), 1200)
    common, special = lexicon[::2], lexicon[1::2]
    share = len(special) // len(QUEUES)
    texts, labels = [], []
    for _ in range(count):
        label = rng.randrange(len(QUEUES))
        own = special[label * share : (label + 1) * share]
        length = min(110, max(6, int(rng.lognormvariate(2.9, 0.45))))
        words = [rng.choice(own) if rng.random() < 0.15 else rng.choice(common) for _ in range(length)]
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels
