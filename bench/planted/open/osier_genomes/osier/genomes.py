"""Random genomes with repeated motifs, and windows of them with masked letters."""

import numpy as np
import torch
from torch.utils.data import IterableDataset

LETTERS = 4
MASK = 4


class Windows(IterableDataset):
    def __init__(self, settings):
        self.settings = settings
        rng = np.random.default_rng(settings.seed)
        motifs = [rng.integers(0, LETTERS, size=int(rng.integers(12, 30))) for _ in range(settings.motifs)]
        self.genomes = []
        for _ in range(settings.genomes):
            genome = rng.integers(0, LETTERS, size=settings.genome_length)
            for _ in range(settings.genome_length // 60):
                motif = motifs[int(rng.integers(len(motifs)))]
                at = int(rng.integers(0, settings.genome_length - 30))
                genome[at : at + len(motif)] = motif
            self.genomes.append(torch.from_numpy(genome))

    def __iter__(self):
        s = self.settings
        generator = torch.Generator().manual_seed(s.seed)
        while True:
            number = int(torch.randint(len(self.genomes), (), generator=generator))
            start = int(torch.randint(s.genome_length - s.window, (), generator=generator))
            truth = self.genomes[number][start : start + s.window]
            if torch.rand((), generator=generator) < 0.5:
                truth = 3 - truth.flip(0)  # the other strand
            hidden = torch.rand(s.window, generator=generator) < s.mask_rate
            yield truth.masked_fill(hidden, MASK), truth, hidden
