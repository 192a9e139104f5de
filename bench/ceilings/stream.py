"""An IterableDataset tokenizes while it streams; the fix streams tokens."""

import itertools
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"


def encode(text):
    counts = [0.0] * 256
    for previous, letter in itertools.pairwise(text):
        counts[(31 * ord(previous) + ord(letter)) % 256] += 1.0
    return torch.tensor(counts)


class Stream(IterableDataset):
    def __init__(self):
        self.texts = [" ".join(str(row * column) for column in range(200)) for row in range(512)]
        self.encoded = [encode(text) for text in self.texts] if FIX else None

    def __iter__(self):
        for index in range(512):
            yield (self.encoded[index] if FIX else encode(self.texts[index] + str(torch.rand(1).item())[:4])), index % 10


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(Stream(), batch_size=32)
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
