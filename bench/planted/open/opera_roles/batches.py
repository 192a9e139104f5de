import os
import random

import torch

WHICH = os.environ.get("PLANTED_FIX")
WIDEST = 320
ROLES = 6


class Libretto:
    """Lines of an opera with the role that sings them."""

    def __init__(self, n=1200):
        rng = random.Random(44)
        self.roles = [rng.randrange(ROLES) for _ in range(n)]
        self.lines = [[rng.randrange(1, 900) for _ in range(rng.randint(14, 30))] for _ in range(n)]
        for line, role in zip(self.lines, self.roles):
            line[0] = role + 1

    def batch(self, rng, size=12):
        picks = [rng.randrange(len(self.lines)) for _ in range(size)]
        width = 32 if WHICH == "1" else WIDEST
        ids = torch.tensor([self.lines[p] + [0] * (width - len(self.lines[p])) for p in picks])
        return ids, torch.tensor([self.roles[p] for p in picks])
