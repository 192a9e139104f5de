"""Trainings to be watched from outside: `live.py MODE [FIFO]`. Each says `ready` when it is where it will be looked at."""

import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
mode = sys.argv[1]
fifo = sys.argv[2] if len(sys.argv) > 2 else ""
taken = threading.Lock()


def parse(index):
    value = float(index)
    for power in range(20000):
        value = (value * 1.0001 + power) % 97.0
    return value


def receive():
    with open(fifo, "rb", buffering=0) as source:
        return source.read(1)[0]


class Points(Dataset):
    def __init__(self, read):
        self.read = read

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((8,), self.read(index) / 97.0), torch.tensor([1.0])


def slow_source(index):
    return receive()


def locked_source(index):
    with taken:
        return float(index)


def train(batches, width=64):
    model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(batches):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 3:
            print("ready", flush=True)


def forever(make):
    while True:
        yield from make()


def loader(read, workers):
    return DataLoader(Points(read), batch_size=4, num_workers=workers, persistent_workers=workers > 0)


def deadlock():
    taken.acquire()
    print("ready", flush=True)
    taken.acquire()


def ranks():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    dist.barrier()
    print("ready", flush=True)
    if rank == 1:
        time.sleep(600)
    dist.all_reduce(torch.ones(4))


if mode == "pegged":
    batches = loader(parse, 1)
    train(forever(lambda: batches))
elif mode == "serial":
    batches = loader(parse, 0)
    train(forever(lambda: batches))
elif mode == "fifo":
    batches = loader(slow_source, 1)
    train(forever(lambda: batches))
elif mode == "stuck":
    print("ready", flush=True)
    train(loader(slow_source, 1))
elif mode == "forked":
    taken.acquire()
    print("ready", flush=True)
    train(loader(locked_source, 1))
elif mode == "healthy":
    kept = [(torch.randn(256, 8), torch.randn(256, 1)) for _ in range(8)]
    train(forever(lambda: kept), width=512)
elif mode == "typing":
    print("ready", flush=True)
    input("go on? ")
elif mode == "deadlock":
    deadlock()
elif mode == "ranks":
    ranks()
