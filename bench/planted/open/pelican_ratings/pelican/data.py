"""Implicit feedback with hidden tastes, and a sampler of positives and shared negatives."""

import numpy as np
import torch


class Interactions:
    def __init__(self, config):
        rng = np.random.default_rng(config.seed)
        taste = rng.normal(size=(config.users, 6))
        flavour = rng.normal(size=(config.items, 6))
        users = rng.integers(0, config.users, size=config.interactions)
        candidates = rng.integers(0, config.items, size=(config.interactions, 8))
        affinity = np.einsum("nd,nkd->nk", taste[users], flavour[candidates])
        items = candidates[np.arange(config.interactions), affinity.argmax(1)]
        order = rng.permutation(config.interactions)
        held = config.interactions // 20
        self.train = torch.from_numpy(np.stack([users, items], 1)[order[held:]])
        self.test = torch.from_numpy(np.stack([users, items], 1)[order[:held]])
        self.seen: list[set[int]] = [set() for _ in range(config.users)]
        for user, item in self.train.tolist():
            self.seen[user].add(item)
        self.user_features = torch.from_numpy((taste + rng.normal(0, 0.7, taste.shape)).astype(np.float32))
        self.item_features = torch.from_numpy((flavour + rng.normal(0, 0.7, flavour.shape)).astype(np.float32))

    def batches(self, size: int, seed: int):
        generator = torch.Generator().manual_seed(seed)
        while True:
            order = torch.randperm(len(self.train), generator=generator)
            for start in range(0, len(order) - size + 1, size):
                rows = self.train[order[start : start + size]]
                yield rows[:, 0], rows[:, 1]
