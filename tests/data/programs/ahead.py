"""A program that works before it trains, joins samples by an object of its own and cleans up through a library: `ahead.py FOLDER`."""

import ctypes
import os
import sys
import time

import torch
from torch.utils.data import DataLoader

sys.path.insert(0, sys.argv[1])
from cleaner import clean


def prepare() -> list:
    until = time.process_time() + 0.5
    rows = []
    while time.process_time() < until:
        rows.append(torch.full((4,), float(len(rows) % 7)))  # the line that takes the time before the training
    return rows


def look_for_others() -> None:
    """As libraries do that take an interrupted sleep for an error."""
    assert ctypes.CDLL(None).usleep(100_000) == 0
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    assert ctypes.CDLL(None).usleep(100_000) == 0


class Join:
    def __call__(self, rows):
        return torch.stack(rows)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    look_for_others()
    rows = prepare()
    for batch in DataLoader(rows[:160], batch_size=8, collate_fn=Join()):
        model(batch).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        clean()  # collects garbage inside the library
    print("done")


main()
