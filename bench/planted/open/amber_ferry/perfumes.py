"""Made-up perfumes: the notes that the perfumer names, and the chromatogram that the machine draws."""

import numpy as np
import torch


class House:
    def __init__(self, count, notes, scan, seed):
        rng = np.random.default_rng(seed)
        molecules = rng.gamma(0.3, 1.0, (notes, 40)) * (rng.random((notes, 40)) < 0.2)
        peaks = np.exp(-0.5 * ((np.arange(scan) - rng.uniform(0, scan, (40, 1))) / rng.uniform(1.5, 5, (40, 1))) ** 2)
        named = rng.random((count, notes)) < rng.beta(0.7, 9, notes)
        dose = named * rng.lognormal(0, 0.5, (count, notes))
        self.notes = torch.from_numpy(named.astype(np.float32))
        self.scans = torch.from_numpy(np.log1p(dose @ molecules @ peaks).astype(np.float32))

    def split(self, held_out):
        rest = len(self.notes) - held_out
        return (self.notes[:rest], self.scans[:rest]), (self.notes[rest:], self.scans[rest:])


def rounds(pairs, batch, generator):
    """Epoch after epoch; batches are gathered by index from memory."""
    epoch = 0
    while True:
        order = torch.randperm(len(pairs[0]), generator=generator)
        for rows in order[: len(order) // batch * batch].split(batch):
            yield epoch, pairs[0][rows], pairs[1][rows]
        epoch += 1


def smudge(notes, scans):
    """Forgets some notes; shifts, scales and blurs the machine's baseline."""
    notes = notes * (torch.rand_like(notes) > 0.15)
    gain = 1 + 0.1 * torch.randn(len(scans), 1)
    return notes, torch.addcmul(0.03 * torch.randn_like(scans), scans, gain).roll(int(torch.randint(-2, 3, ())), 1)
