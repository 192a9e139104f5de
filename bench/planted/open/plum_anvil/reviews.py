import os

import numpy as np
import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"
VOCAB, MAX_TOKENS, PAD = 2000, 192, 0


def write_reviews(n, seed):
    """Token lists whose polarity words decide the star rating (0-4)."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        length = int(np.clip(rng.lognormal(3.3, 0.45), 6, MAX_TOKENS))
        stars = int(rng.integers(0, 5))
        words = rng.zipf(1.3, length) % (VOCAB - 60) + 60
        tone = rng.random(length) < 0.25
        words[tone] = 10 + stars * 8 + rng.integers(0, 8, int(tone.sum()))
        rows.append((words.tolist(), stars))
    return rows


def collate(rows):
    if FIXED:
        width = max(len(words) for words, _ in rows)
    else:
        width = MAX_TOKENS
    tokens = torch.full((len(rows), width), PAD, dtype=torch.long)
    for i, (words, _) in enumerate(rows):
        tokens[i, : len(words)] = torch.tensor(words)
    stars = torch.tensor([s for _, s in rows])
    return tokens, tokens.ne(PAD), stars
