"""Where batches come from, one way a style: python batch_sources.py STYLE. A batch takes 6 ms, all else next to nothing."""

from __future__ import annotations

import concurrent.futures
import functools
import multiprocessing
import queue
import sys
import threading
import time

import numpy
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
STEPS = 64
chance = numpy.random.default_rng(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.first(x).mean((2, 3)))


def fit(net, optimizer, x):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())


def model():
    net = Net()
    return net, torch.optim.SGD(net.parameters(), lr=0.01)


def slowly(seconds=0.006):
    time.sleep(seconds)


def rows():
    slowly()
    return chance.random((4 * 3, 64)).tolist()


def timed(function):
    def around(*args):
        began = time.perf_counter()
        result = function(*args)
        spent[function.__name__] = time.perf_counter() - began
        return result

    return around


spent = {}


def in_one_decorator():
    net, optimizer = model()
    make, step = timed(rows), timed(fit)
    for _ in range(STEPS):
        step(net, optimizer, torch.tensor(make()).view(4, 3, 8, 8))


def lists():
    net, optimizer = model()
    for _ in range(STEPS):
        fit(net, optimizer, torch.tensor(rows()).view(4, 3, 8, 8))


def items():
    slowly()
    return chance.integers(0, 50, 64).tolist(), chance.integers(0, 50, 64).tolist()


class Pairs(nn.Module):
    """Looks up lists of numbers, as they come, by indexing."""

    def __init__(self):
        super().__init__()
        self.users, self.films = nn.Parameter(torch.rand(50, 8)), nn.Parameter(torch.rand(50, 8))

    def forward(self, users, films):
        return (self.users[users] * self.films[films]).sum(1)


def lists_as_they_are():
    net = Pairs()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(STEPS):
        users, films = items()
        loss = net(users, films).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def photographs():
    slowly()
    return chance.integers(0, 255, (4, 8, 8, 3), dtype=numpy.uint8), chance.integers(0, 2, 4)


def other_layout():
    net, optimizer = model()
    for _ in range(STEPS):
        pictures, _labels = photographs()
        fit(net, optimizer, torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255)


def fill(buffer):
    slowly()
    for row in buffer:
        row.copy_(torch.rand(3, 8, 8))


def one_buffer():
    net, optimizer = model()
    buffer = torch.empty(4, 3, 8, 8)
    for _ in range(STEPS):
        fill(buffer)
        fit(net, optimizer, buffer)


def fill_array(array):
    slowly()
    array[:] = chance.random(array.shape)


def one_array():
    net, optimizer = model()
    array = numpy.zeros((4, 3, 8, 8), dtype=numpy.float32)
    for _ in range(STEPS):
        fill_array(array)
        fit(net, optimizer, torch.from_numpy(array))


def real(count):
    slowly()
    return torch.rand(count, 3, 8, 8)


def another_network_first():
    net, optimizer = model()
    maker = nn.Sequential(nn.Linear(8, 192), nn.Unflatten(1, (3, 8, 8)))
    makes = torch.optim.SGD(maker.parameters(), lr=0.01)
    for _ in range(STEPS):
        x = real(4)
        made = maker(torch.randn(4, 8))
        loss = (net(x) - net(made.detach())).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = net(made).square().mean()
        makes.zero_grad()
        loss.backward()
        makes.step()
        print(loss.item())


def between_the_forwards():
    net, optimizer = model()
    maker = nn.Sequential(nn.Linear(8, 192), nn.Unflatten(1, (3, 8, 8)))
    for _ in range(STEPS):
        made = maker(torch.randn(4, 8)).detach()
        loss = (net(real(4)) - net(made)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def shuffled(refill=8):
    buffer = []
    while True:
        if not buffer:
            slowly(0.006 * refill)
            buffer = [torch.rand(4, 3, 8, 8) for _ in range(refill)]
        yield buffer.pop()


def refills():
    net, optimizer = model()
    for _, x in zip(range(STEPS), shuffled(), strict=False):
        fit(net, optimizer, x)


def samples():
    while True:
        slowly()
        yield torch.from_numpy(chance.random((4, 3, 8, 8))).float()


def names():
    """No batch: asked for so many times in each step."""
    for each in ("a", "b"):
        yield [each] * 40


def remade():
    """What the network gets is made of the batch, in another shape and another size."""
    net, optimizer = model()
    for _, x in zip(range(STEPS), samples(), strict=False):
        assert len(list(names())) == 2
        fit(net, optimizer, torch.cat([x + 0.1 * torch.randn_like(x), x.flip(3)]))


def augmented(loader):
    for x in loader:
        rows = x.flatten().tolist()
        slowly()
        yield torch.tensor(rows).view(x.shape)


def around_a_loader():
    net, optimizer = model()
    for x in augmented(torch.utils.data.DataLoader(torch.rand(4 * STEPS, 3, 8, 8), 4)):
        fit(net, optimizer, x)
        time.sleep(0.001)


def computed(_=0, seconds=0.006):
    ends, rows = time.perf_counter() + seconds, chance.random((12, 64))
    while time.perf_counter() < ends:
        rows = numpy.sqrt(rows * rows)
    return rows.astype(numpy.float32).tolist()


def tensors(seconds=0.006):
    return torch.tensor(computed(seconds=seconds)).view(4, 3, 8, 8)


def produce(batches, make, count):
    for _ in range(count):
        batches.put(make())
    batches.put(None)


def filled(make):
    batches = queue.Queue(2)
    threading.Thread(target=produce, args=(batches, make, STEPS), daemon=True).start()
    return batches


def thread_and_queue():
    net, optimizer = model()
    batches = filled(tensors)
    for _ in range(STEPS):
        fit(net, optimizer, batches.get())


def thread_of_lists():
    net, optimizer = model()
    for rows in iter(filled(computed).get, None):
        fit(net, optimizer, torch.tensor(rows).view(4, 3, 8, 8))


def another_queue():
    net, optimizer = model()
    losses = queue.Queue()
    for _ in range(STEPS):
        fit(net, optimizer, real(4))
        threading.Timer(0.004, losses.put, [0]).start()
        losses.get()


class Feeder:
    def __init__(self):
        self.batches = filled(tensors)

    def take(self):
        return self.batches.get()


def method_around_a_queue():
    net, optimizer = model()
    feeder = Feeder()
    for _ in range(STEPS):
        fit(net, optimizer, feeder.take())


class Ahead:
    """Batches that are there before they are asked for."""

    def __init__(self):
        self.batches = filled(lambda: torch.tensor(computed(seconds=0.0)).view(4, 3, 8, 8))

    def __iter__(self):
        while (batch := self.batches.get()) is not None:
            yield batch


def generator_around_a_queue():
    net, optimizer = model()
    for x in Ahead():
        fit(net, optimizer, x)
        slowly(0.006)


class Computed(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        return tensors()[0]


def handed_on(loader):
    batches = filled(iter(loader).__next__)
    while (batch := batches.get()) is not None:
        yield batch


def loader_in_a_thread():
    net, optimizer = model()
    for x in handed_on(torch.utils.data.DataLoader(Computed(), 1)):
        fit(net, optimizer, x)


def pool_of_processes():
    net, optimizer = model()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for rows in pool.imap(functools.partial(computed, seconds=0.03), range(STEPS)):
            fit(net, optimizer, torch.tensor(rows).view(4, 3, 8, 8))


def futures():
    net, optimizer = model()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(tensors, 0.03)
        for _ in range(STEPS):
            x, ahead = ahead.result(), pool.submit(tensors, 0.03)
            fit(net, optimizer, x)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
