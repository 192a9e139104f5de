"""`fidelity.check` on a real training program: broken speed-ups are named, honest ones are the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from trainflash import fidelity, sandbox
from trainflash.errors import ProgramFailed
from trainflash.fidelity.attempt import Bounds
from trainflash.schema import Command, Fidelity, Sandbox

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
EPOCHS = 3


class Points(Dataset):
    def __init__(self, seed, size):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(size, 16, generator=generator)
        self.y = (self.x[:, 0] * self.x[:, 1] > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def evaluate(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
    model.train()
    return right / len(loader.dataset)


train = DataLoader(Points(1, 120), batch_size=16, shuffle=True)
test = DataLoader(Points(2, 64), batch_size=16)
model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
criterion = nn.CrossEntropyLoss()
model.train()
for epoch in range(EPOCHS):
    for step, (x, y) in enumerate(train):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
    print(epoch, evaluate(model, test), flush=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pt")
"""

STEP = "        loss.backward()\n        optimizer.step()\n"
LOSS = "loss = criterion(model(x), y)"
COMMAND = Command((sys.executable, "train.py"))

BROKEN = {
    "skipped updates": ("updates", (STEP, "        loss.backward()\n        if step % 4 != 3:\n            optimizer.step()\n")),
    "smaller batch": ("batch", ("model(x), y)", "model(x[:8]), y[:8])")),
    "dropped samples": ("samples", ("Points(1, 120)", "torch.utils.data.Subset(Points(1, 120), range(96))")),
    "frozen layer": ("coverage", ("model.train()\nfor", "model[0].requires_grad_(False)\nmodel.train()\nfor")),
    "trained in eval mode": ("mode", ("model.train()\nfor", "model.eval()\nfor"), ("    model.train()\n    return", "    return")),
    "learning rate": ("schedule", ("lr=0.05", "lr=0.04")),
    "late schedule": ("schedule", ("optimizer, 2, 0.5", "optimizer, 3, 0.5")),
    "replayed batch": ("samples", ("enumerate(train)", "enumerate([next(iter(train))] * len(train))")),
    "shuffle lost": ("order", ("shuffle=True", "shuffle=False")),
    "pairing lost": ("targets", (LOSS, "loss = criterion(model(x), y.flip(0))")),
    "clipping added": ("loss", (STEP, STEP.replace("optimizer", "nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n        optimizer"))),
    "less evaluated": ("evaluation", ("Points(2, 64)", "Points(2, 32)")),
    "a part of the outputs scored": ("evaluation", ("(model(x).argmax(1) == y)", "(model(x).argmax(1) == y)[:8]")),
    "checkpoint without optimizer": ("checkpoint", (', "optimizer": optimizer.state_dict()', "")),
    "an epoch less": ("updates", ("EPOCHS = 3", "EPOCHS = 2")),
    "no training": ("updates", ("EPOCHS = 3", "EPOCHS = 0")),
    "crash": ("failed", ("    scheduler.step()\n", "    scheduler.step()\n    raise ValueError('boom')\n")),
    "NaN": ("loss", (LOSS, LOSS + " * (float('nan') if epoch == 2 else 1)")),
}

NO_GRAD = ("def evaluate", "@torch.no_grad()\ndef evaluate")
HONEST = {
    "evaluation without gradients": (NO_GRAD,),
    "evaluation in larger batches": (NO_GRAD, ("Points(2, 64), batch_size=16", "Points(2, 64), batch_size=64")),
    "zeroed in place": (("zero_grad()", "zero_grad(set_to_none=False)"),),
    "memoised data": (("    def __getitem__", "    @__import__('functools').lru_cache(None)\n    def __getitem__"),),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Sandbox:
    base = tmp_path_factory.mktemp("fidelity")
    project = base / "project"
    project.mkdir()
    (project / "train.py").write_text(PROGRAM)
    os.environ["OMP_NUM_THREADS"] = "1"
    return sandbox.create(project, base / "sandbox")


def candidate(made: Sandbox, *edits: tuple[str, str]) -> Path:
    """Write the candidate: the program with `edits` made."""
    text = PROGRAM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = sandbox.project_in(made, "candidate") / "train.py"
    path.write_text(text)
    return path


def check(made: Sandbox, tmp_path: Path, *edits: tuple[str, str]) -> Fidelity:
    """The verdict on the program with `edits`; the baseline's runs are shared by all tests."""
    candidate(made, *edits)
    return fidelity.check(made, COMMAND, COMMAND, tmp_path / "runs", baseline_record=Path(made.directory) / "fidelity-baseline")


@pytest.mark.full
@pytest.mark.parametrize("name", BROKEN)
def test_broken_speed_up_is_refused_by_name(made, tmp_path, name):
    change, *edits = BROKEN[name]
    found = check(made, tmp_path, *edits)
    assert found.verdict == "changed", found.reasons
    assert change in found.changed
    assert found.reasons


@pytest.mark.full
@pytest.mark.parametrize("name", HONEST)
def test_honest_speed_up_is_the_same(made, tmp_path, name):
    found = check(made, tmp_path, *HONEST[name])
    assert found.verdict == "same", found.reasons
    assert found.not_seen == ()


@pytest.mark.full
def test_all_honest_changes_together_are_the_same_and_one_broken_one_is_not(made, tmp_path):
    edits = [edit for edits in HONEST.values() for edit in edits if edit != NO_GRAD]
    found = check(made, tmp_path / "honest", NO_GRAD, *edits)
    assert (found.verdict, found.mean_abs_loss_delta) == ("same", 0.0), found.reasons
    assert found.seen == ("epoch boundary", "evaluation", "checkpoint", "schedule")
    found = check(made, tmp_path / "broken", NO_GRAD, *edits, ("optimizer, 2, 0.5", "optimizer, 3, 0.5"))
    assert (found.verdict, found.changed) == ("changed", ("schedule",))
    assert "update 17" in found.reasons[0]


@pytest.mark.full
def test_rounding_is_close_within_the_programs_own_noise(made, tmp_path):
    found = check(made, tmp_path, (LOSS, "loss = criterion(model(x).double(), y).float()"))
    assert (found.verdict, found.changed) == ("close", ("numerics",))
    assert 0 < found.mean_abs_loss_delta < 1e-5
    assert "0 between two runs of the baseline" in found.reasons[0]


@pytest.mark.full
def test_another_seed_of_the_sampler_is_order_alone(made, tmp_path):
    found = check(made, tmp_path, ("shuffle=True", "shuffle=True, generator=torch.Generator().manual_seed(5)"))
    assert (found.verdict, found.changed) == ("changed", ("order",))


@pytest.mark.full
def test_a_program_without_a_repeatable_order_is_judged_beside_the_spread_of_its_own_runs(made, tmp_path):
    unsteady = ("EPOCHS = 3\n", "EPOCHS = 3\nimport time\ntorch.manual_seed(time.time_ns())\n")
    candidate(made, unsteady)
    both = Sandbox(**{**vars(made), "baseline": made.worktree})
    found = fidelity.check(both, COMMAND, COMMAND, tmp_path / "runs")
    assert (found.verdict, found.changed) == ("close", ("numerics",)), found.reasons
    assert "set a seed" in found.reasons[0] and "within the spread of 5 runs of the baseline" in found.reasons[1]


@pytest.mark.full
def test_a_hanging_candidate_is_stopped_and_leaves_it_open(made, tmp_path):
    candidate(made, ("    scheduler.step()\n", "    scheduler.step()\n    __import__('time').sleep(3600)\n"))
    bounds = Bounds(least_patience_s=1.0, patience=1.0)
    found = fidelity.check(made, COMMAND, COMMAND, tmp_path / "runs", bounds=bounds)
    assert found.verdict == "inconclusive"
    assert "was stopped" in found.reasons[0]


@pytest.mark.full
def test_a_given_number_of_updates_cuts_both_and_says_what_was_not_seen(made, tmp_path):
    candidate(made, ("EPOCHS = 3", "EPOCHS = 100000"))
    both = Sandbox(**{**vars(made), "baseline": made.worktree})
    told: list[tuple[str, int, int]] = []
    found = fidelity.check(both, COMMAND, COMMAND, tmp_path / "runs", updates=40, on_progress=lambda *each: told.append(each))
    assert found.verdict == "same", found.reasons
    assert found.updates >= 40
    assert {"fidelity: baseline and candidate", "fidelity: other-seed"} <= {label for label, _, _ in told}
    assert max(done for _, done, _ in told) >= 40 and {total for _, _, total in told} >= {40}


@pytest.mark.full
def test_a_baseline_that_fails_or_never_trains_is_the_programs_failure(made, tmp_path):
    for place, edit in (("crash", ("EPOCHS = 3\n", "EPOCHS = 3\nraise ValueError('boom')\n")), ("idle", ("EPOCHS = 3", "EPOCHS = 0"))):
        candidate(made, edit)
        both = Sandbox(**{**vars(made), "baseline": made.worktree})
        with pytest.raises(ProgramFailed, match=r"exit code 1|never completed"):
            fidelity.check(both, COMMAND, COMMAND, tmp_path / place)
