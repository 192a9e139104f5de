import torch
import torch.nn as nn
import torch.nn.functional as F


class RelationalLayer(nn.Module):
    """Dense message passing with one linear map per bond type."""

    def __init__(self, dim, n_bond_types):
        super().__init__()
        self.message = nn.Linear(dim, dim * n_bond_types, bias=False)
        self.update = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.norm = nn.LayerNorm(dim)
        self.n_types = n_bond_types

    def forward(self, h, adj, mask):
        b, n, d = h.shape
        m = self.message(h).view(b, n, self.n_types, d).transpose(1, 2)
        agg = torch.matmul(adj, m).sum(1)
        return self.norm(h + self.update(torch.cat([h, agg], dim=-1))) * mask.unsqueeze(-1)


class MoleculeNet(nn.Module):
    def __init__(self, n_elements, n_bond_types, hidden, layers):
        super().__init__()
        self.n_bond_types = n_bond_types
        self.embed = nn.Embedding(n_elements, hidden)
        self.layers = nn.ModuleList(RelationalLayer(hidden, n_bond_types) for _ in range(layers))
        self.readout = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, atoms, bonds, mask):
        adj = F.one_hot(bonds, self.n_bond_types).permute(0, 3, 1, 2).float()
        adj[:, 0] = torch.eye(atoms.shape[1])
        h = self.embed(atoms) * mask.unsqueeze(-1)
        for layer in self.layers:
            h = layer(h, adj, mask)
        return (self.readout(h).squeeze(-1) * mask).sum(1) / 16
