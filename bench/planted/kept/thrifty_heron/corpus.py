"""A made-up language: words from syllables, sentences from a small grammar."""
import random

ONSETS, VOWELS = "b d f g k l m n p r s t v z".split(), "a e i o u".split()


def words(rng, n, syllables):
    out = set()
    while len(out) < n:
        out.add("".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(syllables)))
    return sorted(out)


def make_corpus(n_chars, seed):
    rng = random.Random(seed)
    nouns, verbs, adjectives = words(rng, 60, 2), words(rng, 30, 3), words(rng, 20, 2)

    def phrase():
        noun = rng.choice(nouns)
        return f"{rng.choice(adjectives)} {noun}" if rng.random() < 0.4 else noun

    parts, total = [], 0
    while total < n_chars:
        s = f"{phrase()} {rng.choice(verbs)} {phrase()}"
        if rng.random() < 0.3:
            s += f", {phrase()} {rng.choice(verbs)}"
        s += ".\n" if rng.random() < 0.2 else ". "
        parts.append(s)
        total += len(s)
    return "".join(parts)
