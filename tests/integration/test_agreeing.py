"""What needs an agreement is measured first, asked for with its speed, and agreed to without another run. The command line for real."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)


class Rows(Dataset):
    def __init__(self):
        self.rows = torch.randn(256, 16, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        for _ in range(60):
            row = row * 1.0
        return row, (row[0] > 0).long()


data = DataLoader(Rows(), batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(2))
model = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(16):
    for rows, labels in data:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
"""
OTHER_ORDER = (("range(60)", "range(1)"), ("manual_seed(2)", "manual_seed(3)"))
WITHOUT_CLASSES = (*OTHER_ORDER, ("(row[0] > 0).long()", "(row[0] > 9).long()"))  # targets, to which nobody can agree

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.fixture
def tried(user):
    """`optimize try` with the program after these replacements."""
    (user.project / "train.py").write_text(PROGRAM)
    user.git("commit", "-q", "-a", "-m", "rows")
    assert user.trainflash("sandbox", "create", ".").code == 0

    def run(changes, *words: str):
        text = PROGRAM
        for old, new in changes:
            text = text.replace(old, new)
        (user.project / "train.py").write_text(text)
        patch = user.project.parent / "change.diff"
        patch.write_text(user.git("diff"))
        user.git("checkout", "--", "train.py")
        return user.trainflash("optimize", "try", "--patch", str(patch), *words, "--json", "--", sys.executable, "train.py", timeout=600)

    return run


def runs_of(box: str) -> set[str]:
    """Every run of the program that left a trace in the sandbox."""
    return {str(path) for path in Path(box).rglob("run.json")}


def test_an_agreement_afterwards_takes_no_run(user, tried):
    ran = tried(OTHER_ORDER, "--budget", "4m")
    assert ran.code == 5, ran.err
    (one,) = ran.document["experiments"]
    assert (ran.document["status"], one["decision"], one["verdict"]["needs"]) == ("needs_approval", "needs_agreement", ["order"])
    assert one["verdict"]["speedup"]["ci_low"] > 1.02
    assert one["verdict"]["reasons"][0].startswith("needs agreement: order; order: update 1: samples come in another order over the epoch")
    assert one["agree"] == "trainflash verify --experiment 1 --accept-change order"
    box = user.trainflash("sandbox", "status", "--json").document["sandbox"]
    before, began = runs_of(box), time.monotonic()
    agreed = user.trainflash(*shlex.split(one["agree"])[1:], "--json")
    took_s = time.monotonic() - began
    assert (agreed.code, agreed.document["verdict"]) == (0, "accept"), agreed.err
    assert runs_of(box) == before, "nothing ran"
    assert agreed.document["speedup"] == one["verdict"]["speedup"] and agreed.document["starts"] == one["verdict"]["starts"]
    assert took_s < 60, "seconds, and most of them imports on a busy machine"


def test_what_no_agreement_would_mend_is_refused_untimed(tried):
    ran = tried(WITHOUT_CLASSES, "--budget", "4m")
    assert ran.code == 4, ran.err
    judged = ran.document["experiments"][0]["verdict"]
    assert (judged["verdict"], judged["needs"], judged["speedup"]) == ("reject", [], None)
