import os
from collections import Counter

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

PAD, UNK = 0, 1


def make_tickets(cfg):
    """Synthetic tickets: each queue has its own favourite words."""
    rng = np.random.default_rng(cfg["seed"])
    n_words = cfg["vocab_size"]
    base = 1.0 / np.arange(1, n_words + 1)
    base /= base.sum()
    favourites = [rng.choice(n_words, 60, replace=False) for _ in range(cfg["n_queues"])]
    texts, labels = [], []
    for _ in range(cfg["n_tickets"]):
        queue = int(rng.integers(cfg["n_queues"]))
        length = int(np.clip(rng.lognormal(3.0, 0.5), 4, 400))
        words = rng.choice(n_words, length, p=base)
        special = rng.random(length) < 0.2
        words[special] = rng.choice(favourites[queue], special.sum())
        texts.append(" ".join(f"w{w}" for w in words))
        labels.append(queue)
    return texts, labels


def build_vocab(texts, size):
    counts = Counter(w for t in texts for w in t.split())
    return {w: i + 2 for i, (w, _) in enumerate(counts.most_common(size))}


class TicketDataset(Dataset):
    def __init__(self, texts, labels, vocab, max_len):
        self.ids = [[vocab.get(w, UNK) for w in t.split()][:max_len] for t in texts]
        self.labels = labels

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i], self.labels[i]


class Collator:
    def __init__(self, max_len):
        self.max_len = max_len

    def __call__(self, batch):
        length = self.max_len
        if os.environ.get("PLANTED_FIX") == "1":
            length = max(len(ids) for ids, _ in batch)
        input_ids = torch.full((len(batch), length), PAD, dtype=torch.long)
        for row, (ids, _) in enumerate(batch):
            input_ids[row, : len(ids)] = torch.tensor(ids)
        labels = torch.tensor([label for _, label in batch])
        return {"input_ids": input_ids, "mask": input_ids != PAD, "labels": labels}


def build_loader(texts, labels, cfg):
    vocab = build_vocab(texts, cfg["vocab_size"])
    dataset = TicketDataset(texts, labels, vocab, cfg["max_len"])
    loader = DataLoader(dataset, batch_size=cfg["batch_size"], shuffle=True, drop_last=True, collate_fn=Collator(cfg["max_len"]))
    return loader, vocab
