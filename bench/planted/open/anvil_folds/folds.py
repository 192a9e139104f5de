import numpy as np
from torch.utils.data import DataLoader, Subset


class Folds:
    """Rounds of k-fold cross-validation, each round with its own cut."""

    def __init__(self, data, k, batch, seed=0):
        self.data, self.k, self.batch, self.seed = data, k, batch, seed

    def __iter__(self):
        turn = 0
        while True:
            parts = np.array_split(np.random.default_rng([self.seed, turn]).permutation(len(self.data)), self.k)
            for number, held in enumerate(parts):
                rest = np.concatenate([p for i, p in enumerate(parts) if i != number])
                train = DataLoader(Subset(self.data, rest.tolist()), self.batch, shuffle=True, drop_last=True)
                yield turn, number, train, DataLoader(Subset(self.data, held[:64].tolist()), 64)
            turn += 1
