"""A stream of clicks: each worker reads its share of the log through a shuffle buffer and adds random negatives."""
import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

USERS, ITEMS, CONTEXTS = 120, 200, 10


def write_log(count, seed):
    rng = np.random.default_rng(seed)
    taste, kind = np.random.default_rng(4).normal(size=(USERS, 4)), np.random.default_rng(5).normal(size=(ITEMS, 4))
    rows = []
    for hour in range(count):
        user = int(rng.integers(USERS))
        candidates = rng.integers(ITEMS, size=6)
        item = int(candidates[np.argmax(kind[candidates] @ taste[user])])
        rows.append(f"{user}\t{item}\t{hour * CONTEXTS // count}")
    return rows


class Clicks(IterableDataset):
    def __init__(self, log, seed, buffer=64, negatives=2):
        self.log, self.seed, self.buffer, self.negatives = log, seed, buffer, negatives
        self.epoch = 0

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        generator = torch.Generator().manual_seed(self.seed + 1000 * self.epoch + worker)
        held = []
        for line in self.log[worker::workers]:
            held.append(line)
            if len(held) == self.buffer:
                yield from self.examples(held.pop(int(torch.randint(len(held), (), generator=generator))), generator)
        while held:
            yield from self.examples(held.pop(int(torch.randint(len(held), (), generator=generator))), generator)

    def examples(self, line, generator):
        user, item, context = (int(field) for field in line.split("\t"))
        yield user, item, context, 1.0
        for _ in range(self.negatives):
            yield user, int(torch.randint(ITEMS, (), generator=generator)), context, 0.0


def collate(examples):
    features, labels = [], []
    for user, item, context, label in examples:
        features.append(torch.tensor([user, USERS + item, USERS + ITEMS + context]))
        labels.append(torch.tensor(label))
    return torch.stack(features), torch.stack(labels)
