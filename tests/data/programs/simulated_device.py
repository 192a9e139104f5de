"""A loop on the CPU whose device is simulated: forward, backward and step queue kernels, and a `.item()` sleeps until all is done.

Under the probe its timeline is started on that device by hand, in place of the first tensor on CUDA. Arguments: name=value.
"""

import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

OPTIONS = {"steps": 60, "fwd_ms": 10.0, "bwd_ms": 25.0, "opt_ms": 3.0, "die": 0}
for argument in sys.argv[1:]:
    name, value = argument.split("=", 1)
    OPTIONS[name] = type(OPTIONS[name])(value)


class Device:
    """An in-order queue; what the probe asks of torch.cuda."""

    def __init__(self):
        self.free_at = 0

    def launch(self, ms):
        self.free_at = max(self.free_at, time.monotonic_ns()) + int(ms * 1e6)

    def wait(self):
        while time.monotonic_ns() < self.free_at:
            time.sleep(max(0, self.free_at - time.monotonic_ns()) / 1e9)

    def event(self):
        return Event(self)

    def stream(self):
        return self, 0

    def is_capturing(self):
        return False


class Event:
    def __init__(self, device):
        self.device = device

    def record(self, stream):
        self.at = max(stream.free_at, time.monotonic_ns())

    def query(self):
        return time.monotonic_ns() >= self.at

    def elapsed_time(self, later):
        return (later.at - self.at) / 1e6


DEVICE = Device()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 1))

    def forward(self, x):
        DEVICE.launch(OPTIONS["fwd_ms"])
        y = self.body(x)
        if y.requires_grad:
            y.register_hook(lambda grad: DEVICE.launch(OPTIONS["bwd_ms"]))
        return y


class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        DEVICE.launch(OPTIONS["opt_ms"])
        return super().step(closure)


def item(loss):
    """`loss.item()` on a device."""
    probe = sys.modules.get("trainflash_probe.phases.device")
    if probe is not None:
        probe.wait_begins()
    DEVICE.wait()
    if probe is not None:
        probe.wait_ended()
    return loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Model()
    optimizer = Optimizer(model.parameters(), lr=1e-2)
    rows = TensorDataset(torch.randn(4 * OPTIONS["steps"], 8), torch.randn(4 * OPTIONS["steps"], 1))
    probe = sys.modules.get("trainflash_probe.phases.device")
    if probe is not None:
        probe.start(DEVICE)
    for step, (x, y) in enumerate(DataLoader(rows, batch_size=4)):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, repr(item(loss)), flush=True)
        if probe is not None:
            probe._read()  # what `Watch` does at each boundary
        if OPTIONS["die"] and step == OPTIONS["die"]:
            os.kill(os.getpid(), 9)


if __name__ == "__main__":
    main()
