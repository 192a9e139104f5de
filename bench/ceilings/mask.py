"""The same table is built again in each step; the fix remembers it."""

import functools
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"

data = TensorDataset(torch.randn(4096, 256), torch.randint(0, 10, (4096,)))


def table(size):
    return torch.tensor([[1.0 if column <= row else 0.5 for column in range(size)] for row in range(size)])


if FIX:
    table = functools.cache(table)


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                model[0].weight[:128, :128].mul_(table(128))
                model[0].weight[:128, :128].div_(table(128))


if __name__ == "__main__":
    main()
