"""`collate_fn` joins samples number by number; the fix stacks them."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"


class Rows(Dataset):
    def __init__(self):
        self.rows = torch.randn(1024, 256)

    def __len__(self):
        return 1024

    def __getitem__(self, index):
        return self.rows[index], index % 10


def join(samples):
    if FIX:
        return torch.stack([row for row, _ in samples]), torch.tensor([label for _, label in samples])
    longest = max(len(row) for row, _ in samples)
    joined = []
    for tensor, _ in samples:
        row, padded = tensor.tolist(), []
        for column in range(longest):
            padded.append(row[column] if column < len(row) else 0.0)
        joined.append(padded)
    return torch.tensor(joined), torch.tensor([label for _, label in samples])


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(Rows(), batch_size=32, shuffle=True, collate_fn=join)
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
