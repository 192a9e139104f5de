"""Input that is slow in known ways. Arguments: name=value; see the defaults below."""

import os
import random
import sys
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

OPTIONS = {
    "kind": "parts",
    "steps": 40,
    "workers": 0,
    "batch": 8,
    "ms": 4.0,
    "epochs": 1,
    "thread": 0,
    "start": "fork",
    "subset": 0,
    "single": 0,
}
for argument in sys.argv[1:]:
    name, value = argument.split("=", 1)
    OPTIONS[name] = type(OPTIONS[name])(value)
SIZE = OPTIONS["steps"] * OPTIONS["batch"]
MS = OPTIONS["ms"]


def busy(ms):
    until = time.thread_time() + ms / 1000
    while time.thread_time() < until:
        sum(range(200))


class Rows(Dataset):
    """`parts` computes in both places, `files` has two slow samples, `sleeps` waits, `busy` computes."""

    def __init__(self, kind):
        self.kind = kind
        self.paths = [f"images/{index:04}.png" for index in range(SIZE)]
        self.labels = ["cat"] * SIZE

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        if self.kind == "files":
            time.sleep(0.0003 if index not in (37, 71) else 0.15)
        elif self.kind in ("sleeps", "waits"):
            time.sleep(MS / 1000 / OPTIONS["batch"])
        elif self.kind in ("parts", "busy"):
            busy(MS / OPTIONS["batch"])  # the line in __getitem__
        return torch.full((16,), float(index % 5)), index % 3


def collate(samples):
    if OPTIONS["kind"] == "parts":
        busy(MS / 2)  # the line in collate_fn
    return torch.utils.data.default_collate(samples)


class Whole(Rows):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def table(size):
    return [busy(0.05) or k for k in range(size)]


def decode(index):
    busy(0.1)
    return index * 3 % 7


def shifted(value):
    busy(0.1)
    return value + random.random()


def flipped(value):
    busy(0.1)
    return value if random.random() < 0.5 else -value


class Repeating(Rows):
    def __getitem__(self, index):
        table(4)
        value = flipped(shifted(float(decode(index))) * 0.0 + index)
        return torch.full((16,), value), index % 3


class Stream(IterableDataset):
    def __iter__(self):
        for index in range(SIZE):
            table(8)
            yield torch.full((16,), float(index % 5)), index % 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))

    def mask(self, width):
        busy(2.0 if OPTIONS["kind"] == "mask" else 0.0)
        return torch.ones(width)

    def forward(self, x):
        return self.layers(x * self.mask(x.shape[1]))


def long_call(kind):
    """One call into C a step that takes long: torch, a sleep, or one that holds the interpreter."""
    if kind == "long_torch":
        BIG @ BIG  # the long call
    elif kind == "long_sleep":
        time.sleep(0.1)  # the long call
    elif kind == "long_python":
        sorted(NUMBERS)  # the long call


BIG = torch.ones(1600, 1600) if OPTIONS["kind"] == "long_torch" else None
NUMBERS = [(k * 7919) % 1000003 for k in range(600_000)] if OPTIONS["kind"] == "long_python" else None
POOL = torch.arange(16 * 64, dtype=torch.float32).reshape(64, 16)


def get_batch(indices):
    time.sleep(MS / 1000)  # the line in the data function
    return POOL[indices % 64], indices % 3


def loader():
    kind = OPTIONS["kind"]
    if kind == "stream":
        return DataLoader(Stream(), batch_size=OPTIONS["batch"], num_workers=OPTIONS["workers"])
    if kind == "indices":
        return DataLoader(torch.arange(SIZE), batch_size=OPTIONS["batch"], shuffle=True)
    rows = {"repeats": Repeating, "whole": Whole}.get(kind, Rows)(kind)
    if OPTIONS["subset"]:
        rows = Subset(rows, list(range(SIZE))[::-1])
    if OPTIONS["single"]:
        return DataLoader(rows, batch_size=None, num_workers=OPTIONS["workers"])
    context = OPTIONS["start"] if OPTIONS["workers"] else None
    size, workers = OPTIONS["batch"], OPTIONS["workers"]
    return DataLoader(rows, batch_size=size, num_workers=workers, collate_fn=collate, multiprocessing_context=context)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = loader()
    for _ in range(OPTIONS["epochs"]):
        for batch in batches:
            x, y = get_batch(batch) if OPTIONS["kind"] == "indices" else batch
            if OPTIONS["single"]:
                x, y = x[None], torch.tensor([y])
            long_call(OPTIONS["kind"])
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(repr(loss.item()), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if OPTIONS["thread"]:
        training = threading.Thread(target=main)
        training.start()
        training.join()
    else:
        main()
