import torch
from torch import nn

from cells import ELEMENTS, RADIAL


class GatedConv(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(2 * width + len(RADIAL), 2 * width)
        self.norm = nn.LayerNorm(width)

    def forward(self, atoms, edges, radial):
        src, dst = edges
        gate, core = self.gate(torch.cat([atoms[src], atoms[dst], radial], 1)).chunk(2, 1)
        message = torch.sigmoid(gate) * nn.functional.softplus(core)
        return self.norm(atoms + torch.zeros_like(atoms).index_add(0, dst, message))


class CellNet(nn.Module):
    def __init__(self, width=12, layers=2):
        super().__init__()
        self.kind = nn.Embedding(ELEMENTS, width)
        self.convs = nn.ModuleList(GatedConv(width) for _ in range(layers))
        self.head = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, batch):
        atoms = self.kind(batch.kinds)
        for conv in self.convs:
            atoms = conv(atoms, batch.edges, batch.radial)
        total = torch.zeros(len(batch.energy), atoms.shape[1]).index_add(0, batch.owner, atoms)
        share = torch.bincount(batch.owner, minlength=len(batch.energy))[:, None]
        return self.head(total / share).squeeze(1)
