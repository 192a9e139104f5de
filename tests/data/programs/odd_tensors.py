"""A training with tensors that have no values, or that tell of each call; what it prints tells whether they were disturbed."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode


class Counting(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        Counting.calls += 1
        return function(*args, **(kwargs or {}))


class Told(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Told.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, inputs, cache=None):
        return self.linear(inputs)


def step(network, optimizer, inputs, cache=None):
    loss = functional.cross_entropy(network(inputs, cache), torch.arange(len(inputs)) % 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main():
    torch.manual_seed(0)
    with FakeTensorMode():
        dry = Net()
        loss = step(dry, torch.optim.SGD(dry.parameters(), 0.1), torch.randn(16, 8))
        print("dry run", tuple(loss.shape))
    cache = torch.randn(300, 200).t()
    cache.untyped_storage().resize_(0)
    network = Net()
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    for _ in range(2):
        print("freed cache", step(network, optimizer, torch.randn(16, 8), cache).item().hex())
    with Counting():
        for _ in range(3):
            step(network, optimizer, torch.randn(16, 8))
            print("calls", Counting.calls)
    for _ in range(2):
        step(network, optimizer, torch.randn(16, 8).as_subclass(Told))
        print("told", Told.calls)


main()
