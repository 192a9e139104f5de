"""Made-up promoter sequences: some carry a TATA-like motif near an initiator."""

import torch
from settings import SequenceSettings
from torch.utils.data import DataLoader, TensorDataset

LETTERS = "ACGT"
MOTIFS = ("TATAAAAG", "TCAGTCTT", "GGGCGGGG")


def _write_motif(bases: torch.Tensor, motif: str, at: int, noise: float, generator: torch.Generator) -> None:
    for offset, letter in enumerate(motif):
        if torch.rand((), generator=generator) >= noise:
            bases[at + offset] = LETTERS.index(letter)


def make(count: int, settings: SequenceSettings, seed: int) -> TensorDataset:
    """Sequences as whole numbers 0-3, with the label 1 where both motifs are there."""
    generator = torch.Generator().manual_seed(seed)
    bases = torch.randint(4, (count, settings.length), generator=generator)
    labels = torch.randint(2, (count,), generator=generator)
    for row, label in enumerate(labels.tolist()):
        at = int(torch.randint(10, settings.length // 2, (), generator=generator))
        if label:
            _write_motif(bases[row], MOTIFS[0], at, settings.motif_noise, generator)
            _write_motif(bases[row], MOTIFS[1], at + 30, settings.motif_noise, generator)
        else:
            _write_motif(bases[row], MOTIFS[2], at, settings.motif_noise, generator)
    return TensorDataset(bases.to(torch.uint8), labels.float())


def loaders(settings: SequenceSettings, batch_size: int) -> tuple[DataLoader, tuple[torch.Tensor, torch.Tensor]]:
    train = make(settings.train, settings, settings.seed)
    valid = make(settings.valid, settings, settings.seed + 1)
    order = torch.Generator().manual_seed(settings.seed + 2)
    return DataLoader(train, batch_size, shuffle=True, drop_last=True, generator=order), valid.tensors
