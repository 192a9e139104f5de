"""Changed lines that never ran in what was compared are named, in whatever process they might have run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from trainflash import fidelity, sandbox
from trainflash.schema import Command, Fidelity, Sandbox

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(1)
torch.set_num_threads(1)


class Points(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return torch.full((4,), index / 96), index % 2


model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(DataLoader(Points(), batch_size=4)):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
COMMAND = Command((sys.executable, "train.py"))
BACKWARD = "    loss.backward()\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Sandbox:
    base = tmp_path_factory.mktemp("unrun")
    project = base / "project"
    project.mkdir()
    (project / "train.py").write_text(PROGRAM)
    os.environ["OMP_NUM_THREADS"] = "1"
    return sandbox.create(project, base / "sandbox")


def check(made: Sandbox, tmp_path: Path, *edits: tuple[str, str], **options) -> Fidelity:
    text = PROGRAM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (sandbox.project_in(made, "candidate") / "train.py").write_text(text)
    kept = Path(made.directory) / "kept"
    return fidelity.check(made, COMMAND, COMMAND, tmp_path / "runs", baseline_record=kept, **options)


def line(text: str, edits: tuple[tuple[str, str], ...]) -> int:
    program = PROGRAM
    for old, new in edits:
        program = program.replace(old, new)
    return program.split("\n").index(text) + 1


def test_a_branch_that_never_ran_is_named_and_one_that_ran_is_not(made, tmp_path):
    edits = (
        (
            BACKWARD,
            "    if step >= 0:\n        step += 0\n    if loss < 0.01: continue\n    if step > 5000:\n        loss = 2 * loss\n" + BACKWARD,
        ),
    )
    found = check(made, tmp_path, *edits)
    assert found.verdict == "same", found.reasons
    short, long = line("    if loss < 0.01: continue", edits), line("        loss = 2 * loss", edits)
    assert found.not_seen[-2:] == (f"train.py:{short}", f"train.py:{long}")
    assert "a longer command" in found.notes[-1]


def test_a_line_that_only_a_forked_worker_runs_is_seen(made, tmp_path):
    edits = (
        (
            "        return torch",
            "        if index > 90:\n            index += 0\n        if index > 96:\n            index = 0\n        return torch",
        ),
        ("batch_size=4", "batch_size=4, num_workers=1, multiprocessing_context='fork'"),
    )
    found = check(made, tmp_path, *edits)
    assert found.verdict == "same", found.reasons
    assert found.not_seen[-1] == f"train.py:{line('            index = 0', edits)}"
    assert sum(entry.startswith("train.py") for entry in found.not_seen) == 1
