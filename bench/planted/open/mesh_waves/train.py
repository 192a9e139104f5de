"""Spectral filters on a mesh: predicts the displacement of every node from its load."""

import os
import time

import torch
from torch import nn

STEPS = int(os.environ.get("PLANTED_STEPS", 600))


def lattice_laplacian(side):
    n = side * side
    adjacency = torch.zeros(n, n)
    for i in range(n):
        for j in (i + 1 if (i + 1) % side else None, i + side):
            if j is not None and j < n:
                adjacency[i, j] = adjacency[j, i] = 1.0
    return torch.diag(adjacency.sum(1)) - adjacency


class SpectralLayer(nn.Module):
    def __init__(self, laplacian, width, order=8):
        super().__init__()
        self.register_buffer("laplacian", laplacian)
        self.basis = torch.linalg.eigh(laplacian) if os.environ.get("PLANTED_FIX") == "1" else None
        self.coefficients = nn.Parameter(torch.randn(order, width) * 0.1)
        self.mix = nn.Linear(width, width)

    def forward(self, h):
        values, vectors = self.basis or torch.linalg.eigh(self.laplacian)
        powers = torch.stack([(values / 8.0) ** k for k in range(len(self.coefficients))], dim=1)
        response = powers @ self.coefficients
        return torch.relu(self.mix(vectors @ (response * (vectors.T @ h))))


class MeshNet(nn.Module):
    def __init__(self, laplacian, width=24):
        super().__init__()
        self.lift = nn.Linear(1, width)
        self.first, self.second = SpectralLayer(laplacian, width), SpectralLayer(laplacian, width)
        self.drop = nn.Linear(width, 1)

    def forward(self, load):
        h = self.lift(load)
        return self.drop(h + self.second(self.first(h)))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(22)
    laplacian = lattice_laplacian(19)
    load = torch.randn(361, 1)
    bend = torch.linalg.solve(laplacian + 0.5 * torch.eye(361), load)
    net = MeshNet(laplacian)
    optimizer = torch.optim.NAdam(net.parameters(), lr=3e-3)
    t = time.time()
    for _epoch in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(load), bend)
        loss.backward()
        optimizer.step()
    print(f"{STEPS} steps in {time.time() - t:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
