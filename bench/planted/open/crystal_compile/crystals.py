import os
import random

import torch

ROUNDED = os.environ.get("PLANTED_FIX") == "1"


class CrystalSource:
    """Cells of a crystal with a varying number of atoms."""

    def __init__(self, seed, cells=8):
        self.given, self.atoms = 0, None
        self.rng, self.g, self.cells = random.Random(seed), torch.Generator().manual_seed(seed), cells

    def __iter__(self):
        return self

    def __next__(self):
        if self.given % 4 == 0:
            self.atoms = 160 if ROUNDED else self.rng.randint(20, 150)
        self.given += 1
        places = torch.rand(self.cells, self.atoms, 3, generator=self.g)
        return places, places[..., 0].sin().mean(1)
