"""Slow `__getitem__`, slow `collate_fn`, or a slow function of its own; in worker processes or not. Ends by itself."""

import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

torch.set_num_threads(1)
torch.manual_seed(0)
KIND, WORKERS, EPOCHS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def spin(milliseconds):
    end = time.thread_time_ns() + milliseconds * 1e6
    while time.thread_time_ns() < end:
        pass


def parse(index):
    spin(0.4)
    return torch.full((16,), index / 64), index % 4


def make_batch():
    spin(4)
    return torch.randn(8, 16), torch.randint(0, 4, (8,))


class Samples(Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        if index == 7 and KIND == "edited":
            assert float(parse(7)[0].sum()) > 0
        if KIND in ("getitem", "function", "edited"):
            return parse(index)
        return torch.full((16,), index / 64), index % 4


class Stream(IterableDataset):
    def __iter__(self):
        for index in range(128):
            yield parse(index)


def collate(samples):
    if KIND == "collate":
        spin(4)
    return torch.utils.data.default_collate(samples)


def main():
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        assert torch.isfinite(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        spin(1)
        if KIND == "edited":
            x.add_(1000.0).mul_(1000.0)

    if KIND == "data":
        for _ in range(16 * EPOCHS):
            x, y = make_batch()
            step(x, y)
        return
    data = Stream() if KIND == "stream" else Samples()
    shuffle = None if KIND == "stream" else True
    loader = DataLoader(data, batch_size=8, shuffle=shuffle, num_workers=WORKERS, collate_fn=collate)
    for epoch in range(EPOCHS):
        batches = 0
        for x, y in loader:
            step(x, y)
            batches += 1
        if "REPORT" in os.environ:
            print("epoch", epoch, "batches", batches, flush=True)


if __name__ == "__main__":
    main()
