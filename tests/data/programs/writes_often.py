"""A training that pickles and inserts into a database in each step; prints how often an item is asked, and what inserts cost."""

import os
import pickle
import sqlite3
import tempfile
import time

import torch

BLOB = bytes(200_000)
PICKLES, INSERTS, STEPS = 200, 20, 8


class Asked:
    times = 0

    @property
    def shape(self):
        Asked.times += 1
        raise AttributeError


def inserted(connection):
    """Seconds."""
    began = time.process_time()
    connection.executemany("insert or replace into images values (?, ?)", [(key, BLOB) for key in range(INSERTS)])
    return time.process_time() - began


def kept(path):
    """Written once, ahead of the training."""
    with open(path, "w") as file:
        file.write("a setting")


def main():
    kept(os.path.join(tempfile.mkdtemp(), "settings"))
    log = open(os.path.join(tempfile.mkdtemp(), "log"), "w")  # noqa: SIM115 (a log that stays open)
    network = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    watched, alone = sqlite3.connect(":memory:"), sqlite3.Connection(":memory:")
    for connection in (watched, alone):
        connection.execute("create table images (key integer primary key, image blob)")
    item, seconds = Asked(), []
    for _ in range(STEPS):
        loss = network(torch.ones(2, 4)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for _ in range(PICKLES):
            pickle.dumps(item)
        seconds.append((inserted(watched), inserted(alone)))
        watched.commit()
        print(loss.item(), file=log)
    print(Asked.times, *(min(each) for each in zip(*seconds)))  # noqa: B905 (Python 3.9)


main()
