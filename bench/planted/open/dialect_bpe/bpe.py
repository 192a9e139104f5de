"""Byte-pair encoding, trained on the sayings themselves."""

import os
from collections import Counter


def joined(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


class BPE:
    def __init__(self, merges=120):
        self.count, self.merges, self.index, self.seen = merges, [], {}, {}

    def train(self, texts):
        words = [word for text in texts for word in text.split()]
        if os.environ.get("PLANTED_FIX") == "1":
            weighted = [(list(word) + ["_"], n) for word, n in Counter(words).items()]
        else:
            weighted = [(list(word) + ["_"], 1) for word in words]
        symbols = {s for word, _ in weighted for s in word}
        for _ in range(self.count):
            pairs = Counter()
            for word, n in weighted:
                for pair in zip(word, word[1:]):
                    pairs[pair] += n
            best = max(pairs, key=lambda pair: (pairs[pair], pair))
            self.merges.append(best)
            symbols.add(best[0] + best[1])
            weighted = [(joined(word, best), n) for word, n in weighted]
        self.index = {s: i for i, s in enumerate(sorted(symbols))}
        return self

    def word(self, word):
        if word not in self.seen:
            symbols = list(word) + ["_"]
            for pair in self.merges:
                symbols = joined(symbols, pair)
            self.seen[word] = [self.index[s] for s in symbols]
        return self.seen[word]

    def encode(self, text):
        return [i for word in text.split() for i in self.word(word)]
