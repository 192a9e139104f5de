import math
import os
import random
from collections import Counter

FAST = os.environ.get("PLANTED_FIX") == "1"


def sentences(count, seed=17):
    rng = random.Random(seed)
    for _ in range(count):
        topic = rng.randrange(40)
        yield [f"w{(topic * 37 + int(rng.expovariate(0.08))) % 1500}" for _ in range(25)]


def build(window=4):
    """Counts pairs within the window over the whole corpus and weighs them by mutual information."""
    words, pairs = Counter(), Counter()
    for sentence in sentences(400 if FAST else 30000):
        words.update(sentence)
        for i, centre in enumerate(sentence):
            for j in range(max(0, i - window), min(len(sentence), i + window + 1)):
                if i != j:
                    pairs[centre, sentence[j]] += 1
    ids = {w: n for n, w in enumerate(sorted(words))}
    total = sum(pairs.values())
    triples = []
    for (a, b), n in pairs.items():
        triples.append((ids[a], ids[b], math.log(n * total / (words[a] * words[b] * 64))))
    return ids, triples
