"""Chronicles as letters from a small Markov chain per scribe; entries of many lengths."""

import random

import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

LETTERS, SCRIBES = 40, 6


class Entries(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        chain = torch.randn(SCRIBES, LETTERS, LETTERS, generator=torch.Generator().manual_seed(9)).mul(1.5).softmax(2)
        length = torch.randint(20, 120, (count,), generator=g)
        scribe = torch.randint(SCRIBES, (count,), generator=g)
        text = torch.zeros(count, 120, dtype=torch.long)
        text[:, 0] = torch.randint(LETTERS, (count,), generator=g)
        for t in range(1, 120):
            text[:, t] = torch.multinomial(chain[scribe, text[:, t - 1]], 1, generator=g).squeeze(1)
        self.rows = [row[:n] for row, n in zip(text, length.tolist())]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class LikeLengths(Sampler):
    """Shuffles, sorts within pools, cuts into batches, shuffles those."""

    def __init__(self, data, size, pool=20):
        self.data, self.size, self.pool, self.dice = data, size, pool, random.Random(4)

    def __len__(self):
        return len(self.data) // self.size

    def __iter__(self):
        order = list(range(len(self.data)))
        self.dice.shuffle(order)
        batches = []
        for at in range(0, len(order), self.size * self.pool):
            near = sorted(order[at : at + self.size * self.pool], key=lambda i: len(self.data.rows[i]))
            batches += [near[i : i + self.size] for i in range(0, len(near), self.size)]
        self.dice.shuffle(batches)
        return iter(b for b in batches if len(b) == self.size)


def packed(rows):
    return pack_sequence([r[:-1] for r in rows], enforce_sorted=False), pack_sequence([r[1:] for r in rows], enforce_sorted=False).data


def loader(count, seed, size):
    data = Entries(count, seed)
    return DataLoader(data, batch_sampler=LikeLengths(data, size), collate_fn=packed, num_workers=0)
