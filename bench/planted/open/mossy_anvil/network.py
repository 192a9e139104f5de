import torch
from packing import Packed
from torch import nn


class Round(nn.Module):
    def __init__(self, width: int, shells: int) -> None:
        super().__init__()
        self.gate = nn.Linear(shells, width)
        self.send = nn.Linear(width, width)
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, atoms: torch.Tensor, shells: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        receiver, sender = pairs
        message = self.send(atoms).index_select(0, sender) * self.gate(shells)
        heard = torch.zeros_like(atoms).index_add(0, receiver, message)
        return atoms + self.update(torch.cat([atoms, heard], dim=1))


class EnergyNet(nn.Module):
    def __init__(self, species: int, width: int, rounds: int, cutoff: float, shells: int = 8) -> None:
        super().__init__()
        self.kind = nn.Embedding(species, width)
        self.rounds = nn.ModuleList(Round(width, shells) for _ in range(rounds))
        self.head = nn.Linear(width, 1)
        self.register_buffer("centres", torch.linspace(0, cutoff, shells))
        self.sharp = (shells / cutoff) ** 2

    def forward(self, batch: Packed) -> torch.Tensor:
        apart = batch.places[batch.pairs[0]] - batch.places[batch.pairs[1]]
        distance = ((apart + 0.5) % 1 - 0.5).norm(dim=1)
        shells = torch.exp(-self.sharp * (distance[:, None] - self.centres) ** 2)
        atoms = self.kind(batch.species)
        for one in self.rounds:
            atoms = one(atoms, shells, batch.pairs)
        each = self.head(atoms).squeeze(1)
        return torch.zeros(len(batch.energy)).index_add(0, batch.owner, each)
