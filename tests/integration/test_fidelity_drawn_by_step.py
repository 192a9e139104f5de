"""A loader that each step begins anew, and one iterator of it in its place: another order, where it is the same data."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainflash import fidelity, sandbox
from trainflash.schema import Command, Fidelity

pytestmark = pytest.mark.full

PROGRAM = """
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(3)


class Points(Dataset):
    def __init__(self, size):
        self.x = torch.randn(size, 16, generator=torch.Generator().manual_seed(1))
        self.y = (self.x[:, 0] * self.x[:, 1] > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        return self.x[at], self.y[at]


loader = DataLoader(Points(640), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(160):
    x, y = next(iter(loader))
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
COMMAND = Command((sys.executable, "train.py"))
KEPT = PROGRAM.replace("for step", "batches = itertools.chain.from_iterable(itertools.repeat(loader))\nfor step").replace(
    "next(iter(loader))", "next(batches)"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("drawn")
    project = base / "project"
    project.mkdir()
    (project / "train.py").write_text(PROGRAM)
    return sandbox.create(project, base / "sandbox")


def judged(made, folder: Path, text: str) -> Fidelity:
    (sandbox.project_in(made, "candidate") / "train.py").write_text(text)
    baseline = Path(made.directory) / "baseline-runs"
    return fidelity.check(made, COMMAND, COMMAND, folder, baseline_record=baseline, allowed=frozenset({"order"}))


def test_one_iterator_of_the_loader_is_another_order_alone(made, tmp_path):
    found = judged(made, tmp_path, KEPT)
    assert found.changed == ("order",), found.reasons
    samples = next(check for check in found.checks if check.name == "samples")
    assert samples.ok and "draws its samples anew" in samples.evidence


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("Points(640)", "Points(320)", "samples"),
        ("shuffle=True", "shuffle=False", "samples"),
        ("from_iterable(itertools.repeat(loader))", "from_iterable(itertools.repeat(list(loader)))", "samples"),
        ("x, y = next(batches)", "x, y = next(batches) if step % 2 == 0 else (x, y)", "samples"),
        ("(self.x[:, 0] * self.x[:, 1] > 0)", "(self.x[:, 0] > 0)", "targets"),
        ("lr=0.05", "lr=0.04", "schedule"),
    ],
    ids=["half the data", "not shuffled", "the first pass again", "each batch twice", "other targets", "another rate"],
)
def test_what_is_broken_beside_it_is_refused(made, tmp_path, old, new, changed):
    assert KEPT.count(old) == 1
    found = judged(made, tmp_path, KEPT.replace(old, new))
    assert found.verdict == "changed" and changed in found.changed, found.reasons
