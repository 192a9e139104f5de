"""Habits that no library names: a database, a pickled state, threads per step, hooks, a mode, equal operators, single samples."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import sqlite3
import sys
import threading

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

FOLDER, STEPS = sys.argv[1], int(sys.argv[2])
MODE = "mode" in sys.argv


class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Rerun(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with torch.no_grad():
            return work(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = [each.detach().requires_grad_() for each in ctx.saved_tensors]
        with torch.enable_grad():
            out = work(x)
        return torch.autograd.grad(out, x, grad)


def work(x):
    return (x * x.exp()).tanh()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("laplacian", torch.eye(40) + 0.1)
        self.first, self.last = nn.Linear(8, 40), nn.Linear(40, 1)

    def forward(self, x):
        _values, vectors = torch.linalg.eigh(self.laplacian)
        noise = torch.randn(40, 40)
        return self.last(Rerun.apply(self.first(x) @ vectors)) + 0 * noise.sum()


class Smooth(nn.Module):
    """A loss without parameters, which makes the same large weights each time."""

    def forward(self, error):
        places = torch.arange(600.0)[:, None]
        weights = torch.cdist(places, places)
        return error.square().mean() + 0 * (error.sum() * weights).sum()


def note_norm(module, args, out):
    out.detach().norm()


def note(database, step, loss):
    database.execute("INSERT INTO losses VALUES (?, ?)", (step, loss))
    database.commit()


def whisper(loss):
    if logging.getLogger("habits").isEnabledFor(logging.DEBUG):  # asks before it works, which costs nothing
        logging.getLogger("habits").debug("never")
    logging.getLogger("habits").debug("the loss is %s", loss)


def keep(path, net):
    with open(path + ".tmp", "wb") as file:
        pickle.dump({name: value.numpy() for name, value in net.state_dict().items()}, file)
    os.replace(path + ".tmp", path)


def feed(net, batch):
    return torch.stack([net(row.unsqueeze(0)).squeeze() for row in batch])


def batches():
    while True:
        yield torch.randn(6, 8)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net, smooth = Net(), Smooth()
    net.first.register_forward_hook(note_norm)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    database = sqlite3.connect(os.path.join(FOLDER, "runs.sqlite"))
    database.execute("CREATE TABLE losses (step INTEGER, loss REAL)")
    made = batches()
    with Watch() if MODE else contextlib.nullcontext():
        for step in range(STEPS):
            batch = next(made)
            loss = smooth(feed(net, batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            note(database, step, loss.item())
            whisper(loss.item())
            helper = threading.Thread(target=int)
            helper.start()
            helper.join()
            if step % 8 == 7:
                keep(os.path.join(FOLDER, "net.pkl"), net)
            print(loss.item())


if __name__ == "__main__":
    main()
