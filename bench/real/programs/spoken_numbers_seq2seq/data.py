"""Written amounts and times, and how one says them: '3:45 pm' -> 'quarter to four in the afternoon'."""
import random

import torch
from torch.utils.data import Dataset

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
UNITS = [("km", "kilometres"), ("kg", "kilograms"), ("EUR", "euros"), ("l", "litres"), ("min", "minutes")]


def say(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + ("" if n % 10 == 0 else "-" + ONES[n % 10])
    if n < 1000:
        return ONES[n // 100] + " hundred" + ("" if n % 100 == 0 else " and " + say(n % 100))
    return say(n // 1000) + " thousand" + ("" if n % 1000 == 0 else " " + say(n % 1000))


def example(rng):
    kind = rng.random()
    if kind < 0.3:
        h, m = rng.randint(1, 12), rng.choice([0, 15, 30, 45])
        spoken = {0: f"{say(h)} o'clock", 15: f"quarter past {say(h)}", 30: f"half past {say(h)}",
                  45: f"quarter to {say(h % 12 + 1)}"}[m]
        return f"{h}:{m:02d}", spoken
    n = rng.randint(0, 10 ** rng.randint(1, 4))
    short, long = rng.choice(UNITS)
    if kind < 0.6:
        d = rng.randint(1, 9)
        return f"{n}.{d} {short}", f"{say(n)} point {say(d)} {long}"
    return f"{n} {short}", f"{say(n)} {long}"


class CharTokenizer:
    pad_token_id, bos_token_id, eos_token_id = 0, 1, 2

    def __init__(self, texts):
        self.chars = sorted(set("".join(texts)))
        self.index = {c: i + 3 for i, c in enumerate(self.chars)}

    def __len__(self):
        return len(self.chars) + 3

    def encode(self, text):
        return [self.index[c] for c in text] + [self.eos_token_id]

    def decode(self, ids):
        out = []
        for i in ids:
            if i == self.eos_token_id:
                break
            if i > 2:
                out.append(self.chars[i - 3])
        return "".join(out)


class SpokenNumbers(Dataset):
    def __init__(self, pairs, tokenizer):
        self.items = [(tokenizer.encode(a), tokenizer.encode(b)) for a, b in pairs]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Collator:
    """Pads sources and targets to the longest of the batch; a target starts with bos and ends with eos."""

    def __init__(self, tokenizer):
        self.pad, self.bos = tokenizer.pad_token_id, tokenizer.bos_token_id

    def __call__(self, items):
        sources = [torch.tensor(s) for s, _ in items]
        targets = [torch.tensor([self.bos] + t) for _, t in items]
        pad = torch.nn.utils.rnn.pad_sequence
        return pad(sources, batch_first=True, padding_value=self.pad), pad(targets, batch_first=True, padding_value=self.pad)


def make_pairs(n, seed):
    rng = random.Random(seed)
    return [example(rng) for _ in range(n)]
