"""A metric in plain Python after each step; the fix leaves it out."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"

data = TensorDataset(torch.randn(4096, 256), torch.randint(0, 10, (4096,)))


def accuracy(logits, labels):
    right = 0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        ranked = sorted(range(len(row)), key=lambda index: -row[index])
        right += ranked[0] == label
        right += sum(abs(value) < 0 for value in row)
    return right / len(labels)


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    fit = torch.randn(512, 10)
    truth = torch.randint(0, 10, (512,))
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if not FIX:
                accuracy(fit, truth)


if __name__ == "__main__":
    main()
