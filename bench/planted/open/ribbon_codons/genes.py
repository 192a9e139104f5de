"""Made-up genes: runs of codons with regions of a different usage, to be tagged codon by codon."""

import random

import torch

CODONS, REGIONS = 64, 5


class Genome:
    """Genes sorted by length into drawers, so that a step sees genes that need little filling."""

    def __init__(self, genes: int, shortest: int, longest: int, seed: int, drawer: int = 16) -> None:
        self.rng = random.Random(seed)
        usage = [[self.rng.paretovariate(0.8) for _ in range(CODONS)] for _ in range(REGIONS)]
        self.drawers: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        for _ in range(genes):
            length = self.rng.randint(shortest, longest)
            codons, tags = [], []
            while len(codons) < length:
                region, span = self.rng.randrange(REGIONS), self.rng.randint(8, 30)
                codons += self.rng.choices(range(CODONS), usage[region], k=span)
                tags += [region] * span
            pair = torch.tensor(codons[:length]), torch.tensor(tags[:length])
            self.drawers.setdefault(-(-length // drawer) * drawer, []).append(pair)

    def draw(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Genes of about one length, filled up with an extra codon and the tag -1."""
        lengths = list(self.drawers)
        length = self.rng.choices(lengths, [len(self.drawers[each]) for each in lengths])[0]
        chosen = self.rng.choices(self.drawers[length], k=count)
        codons = torch.full((count, length), CODONS)
        tags = torch.full((count, length), -1)
        for row, (gene, tag) in enumerate(chosen):
            codons[row, : len(gene)], tags[row, : len(tag)] = gene, tag
        return codons, tags
