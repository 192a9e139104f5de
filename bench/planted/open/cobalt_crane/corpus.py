"""Short product reviews over a large made-up vocabulary, with five star ratings."""

import numpy as np
import torch


class ReviewSet:
    def __init__(self, count, vocab, length, seed):
        rng = np.random.default_rng(seed)
        tone = np.random.default_rng(404).normal(0, 1, vocab)
        ids = (vocab * rng.beta(0.6, 2.5, (count, length))).astype(np.int64)
        score = tone[ids].mean(1) + rng.normal(0, 0.1, count)
        cuts = np.quantile(score, [0.2, 0.4, 0.6, 0.8])
        self.ids = torch.from_numpy(ids)
        self.stars = torch.from_numpy(np.digitize(score, cuts))

    def __len__(self):
        return len(self.stars)

    def batches(self, size, generator=None):
        if generator is None:
            order = torch.arange(len(self))
        else:
            order = torch.randperm(len(self), generator=generator)
        for part in order.split(size):
            yield self.ids[part], self.stars[part]
