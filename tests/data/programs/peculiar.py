"""Programs that look closely at torch, or change it: each scene prints what a probe that gets in its way would change."""

import gc
import inspect
import os
import pickle
import sys
import tempfile
import warnings
from typing import List  # noqa: UP035 - TorchScript reads it

import torch
import torch.fx
import torch.nn.functional as F
from torch import nn


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def train(model, steps: int = 6, optimizer=None, after=lambda step, model: model, loss=lambda out, y: F.cross_entropy(out, y)) -> None:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.05)
    for step in range(steps):
        x, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
        found = loss(model(x), y)
        optimizer.zero_grad()
        found.backward()
        optimizer.step()
        print(step, found.item().hex())
        model = after(step, model)


def copied(module):
    """As meta-learning does it: the copy has its own parameters, all else is taken along."""
    made = module.__new__(type(module))
    made.__dict__ = module.__dict__.copy()
    made._parameters = {name: None if each is None else each.clone() for name, each in module._parameters.items()}
    made._modules = {name: copied(each) for name, each in module._modules.items()}
    return made


def meta_learning() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for step in range(6):
        x, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
        before = F.cross_entropy(model(x), y)
        fast = copied(model)
        weights = [each for part in fast.modules() for each in part._parameters.values()]
        gradients = iter(torch.autograd.grad(F.cross_entropy(fast(x), y), weights, create_graph=True))
        for part in fast.modules():
            for name in part._parameters:
                part._parameters[name] = part._parameters[name] - 0.5 * next(gradients)
        loss = F.cross_entropy(fast(x), y) + 0 * before
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())


def moved(step, model):
    if step != 4:
        return model
    made = object.__new__(type(model))
    made.__dict__.update(model.__dict__)
    return made


def copy_survives() -> None:
    train(network(), 8, after=moved)


def patched_call() -> None:
    calls = [0]
    original = nn.Module.__call__

    def mine(self, *args, **kwargs):
        calls[0] += 1
        result = original(self, *args, **kwargs)
        return 0.5 * result if isinstance(self, nn.ReLU) else result

    nn.Module.__call__ = mine
    train(network())
    print(calls, nn.Module.__call__ is mine)
    nn.Module.__call__ = original


def patched_loss() -> None:
    real = F.cross_entropy

    def smooth(out, y):
        return real(out, y, label_smoothing=0.3)

    F.cross_entropy = smooth
    torch.jit.script(doubled)
    train(network())
    print(F.cross_entropy is smooth)
    F.cross_entropy = real


def doubled(x):
    return 2 * x


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)

    def parameters(self, group):
        return (self.first if group == "first" else self.second).parameters()

    def modules(self):
        raise NotImplementedError

    def forward(self, x):
        return self.second(self.first(x))


def own_parameters() -> None:
    torch.manual_seed(0)
    model = Halves()
    train(model, optimizer=torch.optim.SGD([{"params": model.parameters("first")}, {"params": model.parameters("second")}], 0.1))


def scripted_class() -> None:
    @torch.jit.script
    class Pair:
        def __init__(self, a: torch.Tensor, n: List[int]):  # noqa: UP006
            self.a = a
            self.n = n

        def get(self) -> torch.Tensor:
            return torch.relu(self.a) * len(self.n)

    print(Pair(torch.ones(2), [1, 2]).get())


class ByMethod(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    @torch.jit.script_method
    def forward(self, x):
        return F.mse_loss(self.w * x, x) + F.smooth_l1_loss(self.w * x, 2 * x)


def gradient(x: torch.Tensor):
    return torch.autograd.grad([(x * x).sum()], [x])[0]


def scripted() -> None:
    print(ByMethod()(torch.arange(3.0)).item())
    print(torch.jit.script(gradient)(torch.ones(2, requires_grad=True)))
    model = network()
    train(model)
    whole = torch.jit.script(model)
    print(whole(torch.ones(1, 8)).sum().item().hex(), torch.jit.trace(model, torch.ones(1, 8))(torch.ones(1, 8)).sum().item().hex())
    train(model)


def symbolic() -> None:
    """A part of the network is called alone, too: it is a root, and inside the whole it is traced."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.inner(x))

    torch.manual_seed(0)
    block = Block()
    whole = nn.Sequential(block, nn.Linear(8, 4))

    def traced(step, model):
        if step < 5:
            return model
        graph = torch.fx.symbolic_trace(whole)
        print([(node.op, node.name) for node in graph.graph.nodes], graph(torch.ones(1, 8)).sum().item().hex())
        return model

    train(block, 8, torch.optim.SGD(whole.parameters(), 0.1), after=traced)


def moved_files() -> None:
    folder = tempfile.mkdtemp()
    for name in ("a", "d"):
        with open(mode="w", file=os.path.join(folder, name)) as file:
            file.write("x")
    os.replace(src=folder + "/a", dst=folder + "/b")
    os.rename(folder + "/b", dst=folder + "/c")
    print(sorted(os.listdir(folder)))


class Tools:
    log = print
    dumps = pickle.dumps
    opener = open
    collect = gc.collect
    replace = os.replace
    fsync = os.fsync


def built_ins() -> None:
    tools = Tools()
    tools.log("hello")
    print(len(tools.dumps([1])), tools.collect() >= 0)
    with tools.opener(os.devnull) as file:
        print(file.read() == "")
    for each in (print, open, pickle.dumps, gc.collect, os.replace):
        again = pickle.loads(pickle.dumps(each))
        print(each.__name__, each.__module__, again is each, inspect.isbuiltin(each), inspect.isroutine(each), each in {each}, repr(each))
    print(inspect.signature(print), inspect.signature(os.replace))


def named_callers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module="__main__")
        torch.manual_seed(0)
        model = nn.Linear(8, 1)
        train(model, 3, loss=lambda out, y: F.mse_loss(out, y.float()))


def looked_at() -> None:
    for each in (F.cross_entropy, F.mse_loss, torch.autograd.backward, torch.autograd.grad):
        source = inspect.getsource(each)
        print(each.__name__, inspect.signature(each), each.__code__.co_filename, each.__code__.co_firstlineno, hash(source) == hash(source))
        print(source.splitlines()[0], inspect.unwrap(each) is each)
    try:
        F.mse_loss(torch.ones(2), torch.ones(3), reduction="wrong")
    except Exception as error:
        trace = error.__traceback__
        while trace is not None:
            print(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
            trace = trace.tb_next


SCENES = (
    meta_learning, copy_survives, patched_call, patched_loss, own_parameters, scripted_class, scripted, symbolic, moved_files, built_ins,
    named_callers, looked_at,
)  # fmt: skip

if __name__ == "__main__":
    for scene in SCENES:
        print("=====", scene.__name__, flush=True)
        child = os.fork()  # each scene is the first training of its process
        if child:
            os.waitpid(child, 0)
            continue
        try:
            scene()
        except BaseException as error:
            print(type(error).__name__, str(error)[-300:])
        sys.stdout.flush()
        os._exit(0)
    print("===== end", flush=True)
