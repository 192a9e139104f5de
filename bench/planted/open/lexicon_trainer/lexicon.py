import os

import torch
from torch.utils.data import Dataset

KEEP = os.environ.get("PLANTED_FIX") == "1"
SYLLABLES = ["ba", "do", "ki", "lu", "mer", "na", "pos", "ri", "ta", "vel"]


def lexicon():
    """All words of four syllables and their number."""
    words = [""]
    for _ in range(5):
        words = [w + s for w in words for s in SYLLABLES]
    return {w: n for n, w in enumerate(sorted(words, key=lambda w: (w[::-1], len(w))))}


class Dictations(Dataset):
    def __init__(self, n=256):
        g = torch.Generator().manual_seed(1)
        self.spoken = torch.randint(0, 10, (n, 24, 5), generator=g).tolist()
        self.words = None

    def __len__(self):
        return len(self.spoken)

    def __getitem__(self, i):
        if self.words is None:
            self.words = lexicon()
        ids = [self.words["".join(SYLLABLES[s] for s in word)] % 997 for word in self.spoken[i]]
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(ids[0] % 5)}
