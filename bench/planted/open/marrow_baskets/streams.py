"""Endless streams of (context, target, negatives)."""

import os

import numpy as np
import torch

CONTEXT = 6


class Unigram:
    """Items by frequency, smoothed as in word2vec."""

    def __init__(self, counts, power=0.75, seed=0):
        weight = counts**power
        self.p = weight / weight.sum()
        self.rng = np.random.default_rng(seed)
        self.edges = np.cumsum(self.p)

    def draw(self, k):
        return self.rng.choice(len(self.p), size=k, replace=False, p=self.p)

    def draw_many(self, rows, k):
        spots = self.rng.random((rows, k))
        return np.minimum(np.searchsorted(self.edges, spots), len(self.p) - 1)


class NegativeMixin:
    noise: Unigram

    def contrast(self, targets, k):
        if os.environ.get("PLANTED_FIX") == "1":
            return self.noise.draw_many(len(targets), k)
        return np.stack([self.noise.draw(k) for _ in targets])


class BasketStream(NegativeMixin):
    def __init__(self, baskets, noise, batch_size, negatives, seed):
        self.baskets, self.noise = baskets, noise
        self.batch_size, self.negatives = batch_size, negatives
        self.rng = np.random.default_rng(seed)

    def _windows(self):
        while True:
            for b in self.rng.permutation(len(self.baskets)):
                basket = self.baskets[b]
                at = int(self.rng.integers(len(basket)))
                rest = np.delete(basket, at)[:CONTEXT]
                yield np.pad(rest, (0, CONTEXT - len(rest)), mode="wrap"), basket[at]

    def __iter__(self):
        windows = self._windows()
        while True:
            pairs = [next(windows) for _ in range(self.batch_size)]
            context = np.stack([c for c, _ in pairs])
            target = np.array([t for _, t in pairs])
            negative = self.contrast(target, self.negatives)
            yield tuple(torch.from_numpy(a) for a in (context, target, negative))
