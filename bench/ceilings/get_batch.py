"""A function of its own makes batches, without DataLoader; the fix encodes the text once."""

import os
import random

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"

TEXT = " ".join(str(number * number) for number in range(20000))
CODES = torch.tensor([ord(letter) % 64 for letter in TEXT], dtype=torch.float32) / 64


def get_batch():
    starts = [random.randrange(len(TEXT) - 256) for _ in range(32)]
    if FIX:
        rows = torch.stack([CODES[start : start + 256] for start in starts])
    else:
        rows = torch.tensor([[(ord(letter) % 64) / 64 for letter in TEXT[start : start + 256]] for start in starts])
    return rows, torch.tensor([start % 10 for start in starts])


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _epoch in range(1000000):
        for x, y in iter(get_batch, None):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
