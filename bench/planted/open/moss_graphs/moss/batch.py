import os
from typing import NamedTuple

import numpy as np
import torch


class Batch(NamedTuple):
    atoms: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor
    lengths: torch.Tensor
    owner: torch.Tensor
    energy: torch.Tensor


def disjoint_union(molecules):
    energy = torch.tensor([m.energy for m in molecules])
    if os.environ.get("PLANTED_FIX") == "1":
        sizes = np.array([len(m.atoms) for m in molecules])
        shifts = np.cumsum(sizes) - sizes
        bonds = torch.from_numpy(np.concatenate([m.bonds + s for m, s in zip(molecules, shifts)]))
        atoms = torch.from_numpy(np.concatenate([m.atoms for m in molecules]))
        lengths = torch.from_numpy(np.concatenate([m.lengths for m in molecules]))
        owner = torch.from_numpy(np.repeat(np.arange(len(molecules)), sizes))
        return Batch(atoms, bonds[:, 0].contiguous(), bonds[:, 1].contiguous(), lengths, owner, energy)
    atoms, source, target, lengths, owner, shift = [], [], [], [], [], 0
    for number, molecule in enumerate(molecules):
        for kind in molecule.atoms:
            atoms.append(kind)
            owner.append(number)
        for (i, j), length in zip(molecule.bonds, molecule.lengths):
            source.append(i + shift)
            target.append(j + shift)
            lengths.append(length)
        shift += len(molecule.atoms)
    return Batch(*(torch.tensor(column) for column in (atoms, source, target, lengths, owner)), energy)
