"""Reading waits for a slow disk; the fix keeps the data in memory."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"


class Files(Dataset):
    """Each sample is a record that arrives through a pipe from a slow disk; the fix has it in memory."""

    def __init__(self):
        self.rows = torch.randn(1024, 256)

    def __len__(self):
        return 1024

    def __getitem__(self, index):
        if not FIX:
            time.sleep(0.0003)
        return self.rows[index].clone(), index % 10


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(Files(), batch_size=32, shuffle=True)
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
