from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Interactions:
    num_users: int
    num_items: int
    train: np.ndarray  # (n, 2) pairs of user, item
    held_out: np.ndarray  # one item for each user
    seen: list  # set of training items for each user


def make_interactions(users, items, factors, interactions_per_user, seed, **_):
    """Users pick items by latent taste plus item popularity; the last pick is held out."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, factors))
    nature = rng.normal(size=(items, factors))
    popularity = rng.gumbel(size=items)
    score = taste @ nature.T / np.sqrt(factors) * 2 + popularity + rng.gumbel(size=(users, items))
    picks = np.argsort(-score, axis=1)[:, :interactions_per_user]
    picks = rng.permuted(picks, axis=1)
    held_out, kept = picks[:, -1], picks[:, :-1]
    train = np.stack([np.repeat(np.arange(users), kept.shape[1]), kept.reshape(-1)], axis=1)
    return Interactions(users, items, train, held_out, [set(row.tolist()) for row in kept])


class PairSampler:
    """Endless batches of positives, each followed by uniformly drawn negatives."""

    def __init__(self, data, batch_size, negatives, seed):
        self.pairs = torch.from_numpy(data.train)
        self.num_items = data.num_items
        self.batch_size = batch_size
        self.negatives = negatives
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            order = torch.randperm(len(self.pairs), generator=self.generator)
            for chunk in order.split(self.batch_size):
                if len(chunk) < self.batch_size:
                    break
                users, items = self.pairs[chunk].unbind(1)
                drawn = torch.randint(self.num_items, (len(chunk) * self.negatives,), generator=self.generator)
                yield (
                    torch.cat([users, users.repeat_interleave(self.negatives)]),
                    torch.cat([items, drawn]),
                    torch.cat([torch.ones(len(chunk)), torch.zeros(len(drawn))]),
                )
