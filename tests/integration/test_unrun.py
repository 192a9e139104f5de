"""Changed lines that never ran in what was compared are named, in whatever process they might have run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainflash import fidelity, sandbox
from trainflash.fidelity import unrun
from trainflash.fidelity.attempt import Bounds, Starter
from trainflash.fidelity.record import Record, read
from trainflash.fidelity.reuse import Run
from trainflash.schema import Command, Fidelity, Sandbox
from trainflash.verdict import lacking

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


def candidate(made: Sandbox, *edits: tuple[str, str]) -> list[str]:
    """Write the candidate; its lines, the first one at index 1."""
    text = PROGRAM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (sandbox.project_in(made, "candidate") / "train.py").write_text(text)
    sandbox.commit_worktree(made, "candidate")
    return ["", *text.split("\n")]


def check(made: Sandbox, place: Path, **options) -> Fidelity:
    return fidelity.check(made, COMMAND, COMMAND, place, baseline_record=Path(made.directory) / "kept", **options)


def named(found: Fidelity) -> list[str]:
    """Lines that never ran: in what was compared, or in the whole of a program that sets its seed."""
    whole = [note.partition(": ")[2].split(", ") for note in found.notes if note.startswith(unrun._NOT_OF_IT)]
    return [entry for entry in found.not_seen if ".py" in entry] + [entry for entries in whole for entry in entries]


IN_LOOP = (
    BACKWARD,
    "    if step < 0: continue\n    if step >= 0:\n        step += 0\n    if loss < 0.01:\n        loss = 2 * loss\n" + BACKWARD,
)
IN_WORKER = (
    "        return torch",
    "        if index > 90:\n            index += 0\n        if index > 96:\n            index = 0\n        return torch",
)
FORKED = ("batch_size=4", "batch_size=4, num_workers=1, multiprocessing_context='fork'")


@pytest.mark.full
def test_changed_lines_that_never_ran_are_named_wherever_they_might_have_run(made, tmp_path):
    lines = candidate(made, IN_LOOP, IN_WORKER, FORKED)
    same = Fidelity("same", (), 0.0, 0.0, 1e-3, 24, (), (), ())
    compared = Run(Record((), whole=True), 1.0, tmp_path, None)
    starter = Starter(made, None, Bounds(), None, False, (), None)
    found, later = unrun.judge(same, frozenset(), starter, COMMAND, unrun.Shelf(tmp_path, None, False), compared, 280.0)
    unseen = ("            index = 0", "    if step < 0: continue", "        loss = 2 * loss")
    assert named(found) == [f"train.py:{lines.index(line)}" for line in unseen]
    assert "they never ran" in found.notes[-1]
    assert later == 0, "it was compared whole"


@pytest.mark.full
def test_a_change_that_ran_whole_is_stopped_early_and_one_without_branches_not_even_started(made, tmp_path):
    candidate(made, (BACKWARD, "    if step >= 0:\n        step += 0\n" + BACKWARD))
    found = check(made, tmp_path / "ran")
    assert (found.verdict, named(found)) == ("same", [])
    assert "they never ran" not in " ".join(found.notes)
    assert 0 < read(tmp_path / "ran" / "lines").updates <= found.updates
    candidate(made, ("lr=0.1", "lr=0.1, foreach=False"))
    found = check(made, tmp_path / "sure")
    assert (found.verdict, named(found)) == ("same", [])
    assert not (tmp_path / "sure" / "lines").exists()


@pytest.mark.full
def test_a_check_that_goes_on_asks_once(made, tmp_path):
    candidate(made, (BACKWARD, "    if step > 5000:\n        step += 0\n" + BACKWARD))
    first, again = (check(made, tmp_path, resume=True) for _ in range(2))
    assert named(first) == named(again) and len(named(first)) == 1
    assert sorted(path.name for path in tmp_path.glob("lines*")) == ["lines"]


@pytest.mark.full
def test_what_is_compiled_or_traced_by_others_is_left_open(made, tmp_path):
    late = "    if x.shape[0] > 99:\n        y = -x\n    return y\n"
    functions = f"@torch.jit.script\ndef scripted(x):\n    y = 1 * x\n{late}\n\ndef plain(x):\n    y = 1 * x\n{late}\n\nmodel = "
    edits = (("model = ", functions), ("model(x)", "plain(scripted(model(x)))"))
    lines = candidate(made, *edits)
    found = check(made, tmp_path / "scripted")
    assert found.verdict == "same", found.reasons
    assert named(found) == [f"train.py:{len(lines) - 1 - lines[::-1].index('        y = -x')}"], "TorchScript's lines run without a trace"
    candidate(made, *edits, ("import torch\n", "import sys\nimport torch\nsys.settrace(None)\n"))
    found = check(made, tmp_path / "traced")
    assert (found.verdict, named(found)) == ("same", [])
    assert "could not be told" in found.notes[-1]


@pytest.mark.full
def test_dynamo_is_no_trace(made, tmp_path):
    late = "def plain(x):\n    y = 1 * x\n    if x.shape[0] > 99:\n        y = -x\n    return y\n\n"
    late += "fast = torch.compile(plain, backend='eager')\nmodel = "
    candidate(made, ("model = ", late), ("model(x)", "fast(model(x))"))
    found = check(made, tmp_path)
    assert (found.verdict, named(found)) == ("same", []), found.reasons


@pytest.mark.full
def test_low_losses_that_are_skipped_only_below_what_was_reached(tmp_path):
    """A broken speed-up that every comparison calls the same: under our seeds no loss is that low."""
    catalogue = Path(__file__).resolve().parents[2] / "bench" / "fidelity"
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_bytes((catalogue / "programs" / "seedless" / "train.py").read_bytes())
    box = sandbox.create(project, tmp_path / "sandbox")
    change = catalogue / "open" / "seedless_low_losses_skipped" / "change.diff"
    subprocess.run(["git", "-C", str(sandbox.project_in(box, "candidate")), "apply", str(change)], check=True)
    found = fidelity.check(box, COMMAND, COMMAND, tmp_path / "runs")
    assert (found.verdict, named(found)) == ("same", ["train.py:71"]), found.reasons
    assert lacking(found) == {"unseen"}, "under another seed it would run"


EVALUATED_LATE = """
import time

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(8, 4)


def evaluate():
    model.eval()
    with torch.no_grad():
        score = model(x).mean()
    model.train()
    return score


for step in range(100_000):
    time.sleep(0.06)
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    if step % 300 == 299:
        print(step, float(evaluate()))
"""


@pytest.mark.full
def test_a_comparison_is_made_longer_until_the_changed_lines_ran(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(EVALUATED_LATE)
    box = sandbox.create(project, tmp_path / "sandbox")
    kept, bounds = tmp_path / "kept", Bounds(whole_s=5.0, most_s=15.0, total_s=400.0, first_look=10)
    text = EVALUATED_LATE.replace("model(x).mean()", "model(x[:4]).mean()")
    (sandbox.project_in(box, "candidate") / "train.py").write_text(text)
    sandbox.commit_worktree(box, "candidate")
    found = fidelity.check(box, COMMAND, COMMAND, tmp_path / "fewer", baseline_record=kept, bounds=bounds)
    assert found.verdict == "changed" and "evaluation" in found.changed, found.reasons
    (sandbox.project_in(box, "candidate") / "train.py").write_text(EVALUATED_LATE.replace("score = ", "score = 1.0 * "))
    sandbox.commit_worktree(box, "candidate")
    found = fidelity.check(box, COMMAND, COMMAND, tmp_path / "same", baseline_record=kept, bounds=bounds)
    assert (found.verdict, named(found)) == ("same", []), found
    assert found.updates >= 300
