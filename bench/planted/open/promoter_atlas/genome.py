"""Made-up upstream regions: random bases with motifs that decide the class of the promoter."""

import torch
from torch.utils.data import Dataset

BASES = "ACGT"
MOTIFS = {"tata": "TATAAA", "caat": "GGCCAATCT", "gc": "GGGCGG", "inr": "TCAGTC"}
CLASSES = ["none", *MOTIFS]
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def make_region(length: int, rng: torch.Generator) -> tuple[str, int]:
    label = int(torch.randint(len(CLASSES), (1,), generator=rng))
    bases = [BASES[i] for i in torch.randint(4, (length,), generator=rng).tolist()]
    if label:
        motif = MOTIFS[CLASSES[label]]
        start = int(torch.randint(length - len(motif), (1,), generator=rng))
        bases[start : start + len(motif)] = motif
    return "".join(bases), label


def reverse_complement(region: str) -> str:
    return region.translate(COMPLEMENT)[::-1]


class Promoters(Dataset):
    """Regions as base numbers; half of the training regions are read from the other strand."""

    def __init__(self, count: int, length: int, seed: int, both_strands: bool) -> None:
        rng = torch.Generator().manual_seed(seed)
        self.regions = [make_region(length, rng) for _ in range(count)]
        self.both_strands = both_strands

    def __len__(self) -> int:
        return len(self.regions)

    def __getitem__(self, index: int) -> dict:
        region, label = self.regions[index]
        if self.both_strands and index % 2:
            region = reverse_complement(region)
        return {"bases": torch.tensor([BASES.index(base) for base in region]), "labels": label}


def join(samples: list[dict]) -> dict:
    return {
        "bases": torch.stack([sample["bases"] for sample in samples]),
        "labels": torch.tensor([sample["labels"] for sample in samples]),
    }
