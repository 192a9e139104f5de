"""Lines of text are parsed at each access by a pure function; the fix remembers its results."""

import functools
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"


def parse(line):
    values = [float(word) for word in line.split(",")]
    return torch.tensor(values) / 100


if FIX:
    parse = functools.cache(parse)


class Lines(Dataset):
    def __init__(self):
        self.lines = [",".join(str((row * 31 + column) % 97) for column in range(1024)) for row in range(256)]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return parse(self.lines[index]), index % 10


def main():
    model = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(Lines(), batch_size=32, shuffle=True)
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
