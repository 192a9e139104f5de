import numpy as np
import torch
from torch.utils.data import Dataset


class TagCorpus(Dataset):
    """Sentences in which a tag hangs on the word and on the word before it."""

    def __init__(self, size, seed, vocab=16000, tags=7, length=32):
        rng = np.random.default_rng(seed)
        rule = np.random.default_rng(99).integers(0, tags, vocab)
        words = rng.zipf(1.25, (size, length)) % vocab
        prev = np.concatenate([np.zeros((size, 1), int), words[:, :-1]], 1)
        self.words = torch.tensor(words)
        self.tags = torch.tensor((rule[words] + (rule[prev] % 2)) % tags)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return {"input_ids": self.words[i], "labels": self.tags[i]}
