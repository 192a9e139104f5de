"""Made-up unit cells: atoms in a periodic box, with an energy to learn."""

from dataclasses import dataclass

import torch
from settings import Settings
from torch.utils.data import Dataset


@dataclass
class Cell:
    species: torch.Tensor  # [atom]
    places: torch.Tensor  # [atom, 3], fractions of the box
    bonds: torch.Tensor  # [atom, atom], which are neighbours
    energy: torch.Tensor  # []


def build(settings: Settings, generator: torch.Generator) -> Cell:
    atoms = int(torch.randint(settings.smallest, settings.largest + 1, (), generator=generator))
    species = torch.randint(settings.species, (atoms,), generator=generator)
    places = torch.rand(atoms, 3, generator=generator)
    apart = (places[:, None] - places[None] + 0.5) % 1 - 0.5
    distance = apart.norm(dim=-1)
    bonds = (distance < settings.cutoff) & (distance > 0)
    charge = species.float() / settings.species - 0.5
    pull = torch.where(bonds, charge[:, None] * charge[None] / (distance + 0.1), 0.0)
    return Cell(species, places, bonds, pull.sum() / atoms)


class Cells(Dataset):
    def __init__(self, settings: Settings) -> None:
        generator = torch.Generator().manual_seed(settings.seed)
        self.cells = [build(settings, generator) for _ in range(settings.crystals)]

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, number: int) -> Cell:
        return self.cells[number]
