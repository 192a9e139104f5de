"""A library that compares functions of torch by identity, as Lightning does, and a mode that looks them up: `identities.py FOLDER`."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, sys.argv[1])
import judge


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        positions = torch.arange(512.0)[None] * torch.ones(64, 1)  # equal work in each step
        table = torch.exp(-((positions - positions.mean()) ** 2) / 1e4)
        hidden = F.gelu(self.inner(x)) + table.mean()
        judge.judge()
        return torch.nn.functional.relu(self.outer(hidden))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    judge.remember()
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(40):
        loss = F.mse_loss(model(torch.randn(16, 8)), torch.zeros(16, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9f}", judge.said())


main()
