"""Programs that ask questions whose answers a probe could change: `suspicious.py SCENE` trains and prints what it was told."""

import asyncio
import inspect
import logging
import os
import select
import signal
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

STEPS = 32


def train(model, step):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for number in range(STEPS):
        loss = step(number)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(number, loss.item().hex())


def images():
    return torch.randn(4, 1, 8, 8)


def network(convolution=None):
    return nn.Sequential(convolution or nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))


def noisy_convolution():
    """Puts a function of its own, which draws random numbers, in the place of torch's."""
    plain = F.conv2d

    def noisy(x, weight, *args, **kwargs):
        return plain(x, weight + 0.01 * torch.randn_like(weight), *args, **kwargs)

    F.conv2d = noisy
    model = network()
    train(model, lambda number: model(images()).pow(2).mean())


class Choosing(nn.Module):
    """Compares functions of torch by identity, and keeps a table of them."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 1, 3, 3))
        self.function, self.norm = F.conv2d, torch.softmax
        self.names = {F.conv2d: "conv2d", torch.softmax: "softmax", torch.Tensor.exp: "exp", torch.exp: "exp"}

    def forward(self, x):
        same = self.function is F.conv2d and self.norm is torch.softmax and {F.conv2d, torch.softmax, torch.Tensor.exp} <= set(self.names)
        return self.norm((self.function(x, self.weight) if same else x).flatten(1), -1).exp()


def by_identity():
    model = Choosing()
    train(model, lambda number: model(images()).pow(2).mean())


class Measured(torch.Tensor):
    """Handles methods of tensors that it finds in a table, as torch's documentation shows."""

    handled = (torch.Tensor.to, torch.Tensor.add)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            made = function(*args, **(kwargs or {}))
        return made.as_subclass(cls) if isinstance(made, torch.Tensor) and function in cls.handled else made


def handled_by_table():
    model = nn.Linear(4, 1).double()

    def step(number):
        x = torch.randn(8, 4).as_subclass(Measured).to(torch.float64) + 1
        print(type(x).__name__)
        return model(torch.Tensor(x) if type(x) is not Measured else x.as_subclass(torch.Tensor)).pow(2).mean()

    train(model, step)


def rows(count):
    """Leaves its augmentation out while somebody debugs it."""
    if sys.gettrace() is not None:
        return torch.zeros(count, 4)
    return torch.randn(count, 4)


def while_debugged():
    model = nn.Linear(4, 1)
    train(model, lambda number: model(rows(8)).pow(2).mean())


async def remote(count):
    await asyncio.sleep(0)
    return torch.randn(count, 4)


def by_a_coroutine():
    model = nn.Linear(4, 1)

    async def batch():
        return await remote(8) if inspect.iscoroutinefunction(remote) else remote(8)

    train(model, lambda number: model(asyncio.run(batch())).pow(2).mean())


class Closure:
    """A closure that is an object with a method besides."""

    def __init__(self, weight):
        self.weight = weight

    def loss(self):
        return (self.weight * torch.randn(4)).pow(2).sum() + self.weight.sum()

    def __call__(self):
        loss = self.loss()
        self.weight.grad = None
        loss.backward()
        return loss


class Searching(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    def step(self, closure):
        loss = closure()
        with torch.no_grad():
            for weight in self.param_groups[0]["params"]:
                weight -= 0.1 * weight.grad
            print(closure.loss().item().hex())
        return loss


def closure_object():
    weight = torch.randn(4, requires_grad=True)
    optimizer, closure = Searching([weight]), Closure(weight)
    for _ in range(STEPS):
        print(optimizer.step(closure).item().hex())


def asked_rows(count):
    """Reads a variable of whoever called it, and warns there."""
    width = inspect.currentframe().f_back.f_locals["width"]
    return torch.randn(count, width)


def warned_rows(count):
    warnings.warn("few rows", stacklevel=2)
    return torch.randn(count, 4)


def by_its_caller():
    model, warn = nn.Linear(4, 1), warnings.showwarning
    warnings.showwarning = lambda message, kind, path, line, *rest: print(message, os.path.basename(path), line)

    def step(number):
        width = 4
        return model(asked_rows(8) + warned_rows(8)).pow(2).mean() * width

    train(model, step)
    warnings.showwarning = warn


def woken_by_signals():
    """Stops at any signal that the descriptor tells of."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    model = nn.Linear(400, 400)

    def step(number):
        told, _, _ = select.select([reading], [], [], 0)
        if told:
            raise SystemExit(f"stopped by {os.read(reading, 16)!r}")
        return model(torch.randn(2000, 400)).pow(2).mean()

    train(model, step)


class Faulty(TorchDispatchMode):
    """Draws a number for each operator."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        torch.rand(1)
        return function(*args, **(kwargs or {}))


def fault_injection():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with Faulty():
        train(model, lambda number: model(torch.randn(8, 4)).pow(2).mean())


def journal(path):
    """Its only reference closes it."""
    return open(path, "a")


def closed_at_once():
    path = os.path.join(os.environ["SCENE_FOLDER"], "journal.txt")
    model = nn.Linear(4, 1)

    def step(number):
        journal(path).write(f"{number}\n")
        with open(path) as lines:
            print(len(lines.readlines()))
        return model(rows(8)).pow(2).mean()

    train(model, step)


def arguments_by_name():
    for function in (torch.utils.data.DataLoader.__init__, torch.save, torch.optim.SGD.__init__):
        print(inspect.getfullargspec(function).args, list(inspect.signature(function).parameters))
    model = nn.Linear(4, 1)
    train(model, lambda number: model(torch.randn(8, 4)).pow(2).mean())


class Intercept(logging.Handler):
    """Tells who logged, as handlers do that hand records on to another library."""

    def emit(self, record):
        frame = sys._getframe(1)
        while frame.f_code.co_filename == logging.__file__:
            frame = frame.f_back
        print(frame.f_code.co_name, frame.f_lineno, record.getMessage())


def intercepted_logs():
    logging.basicConfig(handlers=[Intercept()], level=logging.INFO, force=True)
    model, log = nn.Linear(4, 1), logging.getLogger("scene")

    def step(number):
        log.info("step %d", number)
        return model(torch.randn(8, 4)).pow(2).mean()

    train(model, step)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
