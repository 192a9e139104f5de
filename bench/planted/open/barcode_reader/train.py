import argparse
import os
import time

import torch
from dataset import Barcodes
from torch import nn, optim
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--max-steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 700)))
opts = parser.parse_args()


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(1, 8, 16, stride=8)
        self.fc1 = nn.Linear(8 * 511, 48)
        self.fc2 = nn.Linear(48, 6)

    def forward(self, row):
        h = torch.relu(self.stem(row[:, None])).flatten(1)
        return self.fc2(torch.relu(self.fc1(h)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(2)
    loader = DataLoader(Barcodes(), opts.batch_size, shuffle=True, num_workers=opts.workers, persistent_workers=opts.workers > 0)
    net = Reader()
    optimizer = optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    count, start, going = 0, time.time(), True
    while going:
        for row, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(row), label)
            loss.backward()
            optimizer.step()
            count += 1
            if count == opts.max_steps:
                going = False
                break
    print(f"{count} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
