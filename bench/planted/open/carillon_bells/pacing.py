import os

import torch


class Pacing:
    """Self-paced learning: only strikes below a quantile of the running difficulty count."""

    def __init__(self, guess, momentum=0.7, begin=0.6, grow=0.002):
        self.difficulty = dict(enumerate(guess))
        self.momentum, self.share, self.grow = momentum, begin, grow
        self.limit = float("inf")

    def observe(self, ids, losses):
        for n, value in zip(ids.tolist(), losses.tolist()):
            self.difficulty[n] = self.momentum * self.difficulty[n] + (1 - self.momentum) * value
        self.share = min(1.0, self.share + self.grow)
        place = int(self.share * (len(self.difficulty) - 1))
        if os.environ.get("PLANTED_FIX") == "1":
            values = torch.tensor(list(self.difficulty.values()), dtype=torch.float64)
            self.limit = values.kthvalue(place + 1).values.item()
        else:
            ranking = sorted(self.difficulty.items(), key=lambda item: item[1])
            self.limit = ranking[place][1]

    def weights(self, ids):
        return torch.tensor([1.0 if self.difficulty[n] <= self.limit else 0.1 for n in ids.tolist()])
