"""Training that uses, between its steps, much of what Python offers and loaders do; prints what each gave: `tools_of_python.py [CODE]`."""

import asyncio
import atexit
import concurrent.futures
import contextvars
import copy
import gc
import inspect
import io
import itertools
import logging
import multiprocessing
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import weakref

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)
numpy.random.seed(0)
X, Y = torch.randn(480, 8), torch.randn(480, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Rows(Dataset):
    def __init__(self, bad=None):
        self.bad = bad

    def __len__(self):
        return 24

    def __getitem__(self, index):
        if index == self.bad:
            raise KeyError(f"no row {index}")
        return X[index] + random.random() + float(numpy.random.rand()) + torch.rand(1)


class Stream(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        yield from (X[index] for index in range(info.id if info else 0, 24, info.num_workers if info else 1))


def digest(value) -> str:
    return f"{float(torch.as_tensor(value).detach().double().abs().sum()):.12g}"


def pickled(model):
    things = [open, torch.save, torch.compile, torch.autograd.grad, torch.autograd.backward, F.mse_loss, F.cross_entropy, os.replace]
    things += [os.fsync, torch.optim.SGD, nn.Module, DataLoader, logging.getLogger("a"), sqlite3.connect, pickle.dump, gc.collect]
    return [pickle.loads(pickle.dumps(thing)) is thing for thing in things]


def signatures(model):
    things = [torch.save, torch.autograd.grad, torch.autograd.backward, F.mse_loss, nn.Module.eval, torch.optim.SGD.step,
              DataLoader.__iter__, torch.compile, torch.jit.script, logging.Logger.info, model.forward]  # fmt: skip
    return [str(inspect.signature(thing)) for thing in things], [thing.__name__ for thing in things]


def sources(model):
    things = [torch.save, F.mse_loss, torch.autograd.grad, torch.optim.SGD.step, nn.Module.eval]
    return [inspect.getsource(thing).strip().splitlines()[0] for thing in things]


def traced(model):
    """Its own trace function, which is not taken away."""
    lines = []

    def trace(frame, event, argument):
        if frame.f_code.co_name == "small":
            lines.append(event)
        return trace

    def small():
        first = 1
        return first + 1

    before = sys.gettrace()
    sys.settrace(trace)
    small()
    sys.settrace(before)
    return lines


def profiled(model):
    calls = []
    sys.setprofile(lambda frame, event, argument: calls.append(event) if frame.f_code.co_name == "digest" else None)
    digest(torch.ones(3))
    sys.setprofile(None)
    return calls.count("call"), calls.count("return")


def alarms(model):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    until = time.monotonic() + 5
    while not seen and time.monotonic() < until:
        time.sleep(0.02)
    signal.signal(signal.SIGALRM, before)
    return len(seen), signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGINT) is signal.default_int_handler


def threads(model):
    other = threading.Thread(target=lambda: model(X[:2]).sum().backward(), name="other")
    other.start()
    other.join()
    return threading.active_count(), [thread.name for thread in threading.enumerate()]


def streams(model):
    return random.random(), float(numpy.random.rand()), float(torch.rand(1)), float(numpy.random.default_rng(3).random())


def released(model):
    """Nothing keeps what the program has let go of."""
    other, x = Net(), torch.randn(4, 8)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    loss = other(x).sum()
    loss.backward()
    optimizer.step()
    references = [weakref.ref(thing) for thing in (other, x, optimizer, loss)]
    del other, x, optimizer, loss
    gc.collect()
    return [reference() is None for reference in references]


def errors(model):
    """Errors keep their kind, their words and their place in the program."""
    found = []
    for act in (
        lambda: model(torch.randn(2, 7)),
        lambda: F.mse_loss(torch.ones(2), torch.ones(3)),
        lambda: torch.ones(2, requires_grad=True).backward(),
        lambda: torch.autograd.grad(torch.ones(1), model.first.weight),
        lambda: torch.save(lambda: 0, io.BytesIO()),
        lambda: open("/nonexistent/file"),  # noqa: SIM115
        lambda: next(iter(DataLoader(Rows(bad=0), batch_size=4))),
        lambda: next(iter(DataLoader(Rows(bad=0), batch_size=4, num_workers=1))),
    ):
        try:
            act()
        except Exception as error:
            own = [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == __file__]
            found.append((type(error).__name__, str(error).splitlines()[0][:60], len(own)))
    return found


def tasks(model):
    async def one(n):
        await asyncio.sleep(0.001)
        return digest(model(X[n : n + 2]))

    async def all_of_them():
        return await asyncio.gather(*(one(n) for n in range(3)))

    return asyncio.run(all_of_them())


def context(model):
    variable = contextvars.ContextVar("variable", default=1)

    def change():
        variable.set(2)
        return digest(model(X[:2])), variable.get()

    return contextvars.copy_context().run(change), variable.get()


def pools(model):
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        numbers = list(executor.map(abs, range(-3, 0)))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return numbers, pool.map(abs, range(-3, 0))


def children(model):
    said = subprocess.run([sys.executable, "-c", "import json; print(json.dumps(1))"], capture_output=True, text=True, check=True).stdout
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        own = copy.deepcopy(model)
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        for start in range(0, 32, 8):
            F.mse_loss(own(X[start : start + 8]), Y[start : start + 8]).backward()
            optimizer.step()
        os.write(write, digest(own.first.weight).encode())
        os._exit(7)
    _, status = os.waitpid(child, 0)
    return said.strip(), os.read(read, 99).decode(), os.waitstatus_to_exitcode(status)


def loaders(model):
    made = [
        DataLoader(Rows(), batch_size=5, drop_last=True),
        DataLoader(Rows(), batch_size=None),
        DataLoader(Rows(), batch_sampler=[[0, 3], [2]]),
        DataLoader(Stream(), batch_size=4, num_workers=2),
        DataLoader(Rows(), batch_size=6, num_workers=1, worker_init_fn=lambda n: random.seed(n), persistent_workers=True),
        DataLoader(Rows(), batch_size=6, shuffle=True, generator=torch.Generator().manual_seed(3)),
    ]
    whole = [[digest(batch) for batch in loader] for loader in made]
    some = [digest(batch) for batch in itertools.islice(made[0], 2)]
    pairs = [digest(a) + digest(b) for a, b in zip(made[5], made[0], strict=False)]
    return whole, some, pairs, len(made[0])


def optimizers(model):
    own = copy.deepcopy(model)
    optimizer = torch.optim.SGD(own.parameters(), lr=0.1, momentum=0.9)
    seen = []
    optimizer.register_step_pre_hook(lambda *given: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *given: seen.append("post"))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    own(X[:4]).sum().backward()
    returned = optimizer.step(lambda: 3.0)
    schedule.step()
    again = copy.deepcopy(optimizer)
    again.step()
    size = len(pickle.dumps(optimizer))
    return seen, returned, schedule.get_last_lr(), optimizer.step.__name__, again.param_groups[0]["lr"], size > 100


def gradients(model):
    x = X[:4].clone().requires_grad_()
    first = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first.square().sum(), x)[0]
    loss = model(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.numpy(), torch.from_numpy):
        kept = torch.tanh(model(x)).sum()
    kept.backward()
    model.zero_grad()
    return digest(second), digest(x.grad)


def scaled(model):
    own = copy.deepcopy(model)
    optimizer, scaler = torch.optim.SGD(own.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    for start in (0, 8):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(own(X[start : start + 8]), Y[start : start + 8])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return digest(own.first.weight), scaler.get_scale()


def logged(model):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(filename)s:%(funcName)s %(message)s"))
    logger = logging.getLogger("training")
    logger.addHandler(handler)
    logger.warning("one %s", 1)
    print("two", file=stream, end="")
    return stream.getvalue()


TOOLS = [
    pickled, signatures, sources, traced, profiled, alarms, threads, streams, released, errors, tasks, context, pools, children, loaders,
    optimizers, gradients, scaled, logged,
]  # fmt: skip


def main():
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    step, total = 0, 0.0
    for _ in range(2):
        for x, y in DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True):
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if step % 4 == 3 and step // 4 < len(TOOLS):
                tool = TOOLS[step // 4]
                print(f"{tool.__name__}: {tool(model)}", flush=True)
                model.zero_grad()
            step += 1
    print(step, repr(total), digest(model.first.weight), flush=True)


if __name__ == "__main__":
    atexit.register(lambda: print("the end", flush=True))
    main()
    sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
