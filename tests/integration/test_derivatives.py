"""Gradients that are no step's backward: those that data are made with, and a derivative that the loss is made of."""

from __future__ import annotations

from pathlib import Path

from probed import diagnosed, probed

PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


def energy(x):
    return (x ** 4 - x ** 2).sum()


def make(count):
    for _ in range(count):
        x = torch.randn(32, 8).requires_grad_()
        yield x.detach(), torch.autograd.grad(energy(x), x)[0]


pairs = list(make(80))
net = nn.Sequential(nn.Linear(8, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for number in range(160):
    x, force = pairs[number % len(pairs)]
    x = x.clone().requires_grad_()
    field = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]  # derivative
    loss = (field - force).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""


def test_gradients_that_make_the_data_are_no_steps_and_a_derivative_in_the_loss_is_forward(tmp_path):
    path = Path(tmp_path, "train.py")
    path.write_text(PROGRAM, encoding="utf-8")
    found = diagnosed(tmp_path, path)
    assert found.warmup_steps >= 80
    assert not any(site.location.function == "energy" for site in found.sites)
    line = next(number for number, row in enumerate(PROGRAM.splitlines(), 1) if "# derivative" in row)
    derivative = next(site for site in found.sites if (site.phase, site.location.line) == ("Fwd", line))
    assert derivative.beside < 0.5 * derivative.forward
    rank = probed(tmp_path / "again", str(path), capture="diagnose", OWN=str(tmp_path)).rank
    forwards = rank.occurrences["Fwd"].start_ns
    inside = (forwards >= rank.step_start_ns[100]) & (forwards < rank.step_start_ns[110])
    assert inside.sum() >= 20, "the network and its derivative, in each step"
