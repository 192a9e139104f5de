"""Made-up notes: words from a few families, the families decide the tags."""

import numpy as np
import torch
from torch.utils.data import Dataset


class Notes(Dataset):
    def __init__(self, count: int, words: int, length: int, tags: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        family = rng.integers(0, tags, words)
        ids = rng.integers(4, words, (count, length))
        tag = family[ids]
        after = np.roll(tag, 1, axis=1)
        tag = np.where((after == 1) & (ids % 3 == 0), 1, tag)
        self.ids, self.tags = torch.from_numpy(ids), torch.from_numpy(tag)
        self.mask = torch.ones(length, dtype=torch.long)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.ids[index], "attention_mask": self.mask, "labels": self.tags[index]}
