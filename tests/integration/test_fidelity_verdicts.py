"""`fidelity.check` where more than one pair of runs is needed: restarts, other orders, the project's metric, resuming, several seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from edited_program import COMMAND, judged, sandbox_of

from trainflash import fidelity, sandbox
from trainflash.fidelity import convergence, metric
from trainflash.schema import Fidelity, Sandbox

PROGRAM = """
import json, os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(96, 8, generator=torch.Generator().manual_seed(1))
train = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(2))
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
begun = 0
if os.path.exists("last.pt"):
    saved = torch.load("last.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    begun = saved["epoch"]
for epoch in range(begun, 4):
    for a, b in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
    with torch.no_grad():
        ends = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()).item()
    with open("log.jsonl", "a") as file:
        file.write(json.dumps({"val": ends}) + chr(10))
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}, "last.pt")
"""
OTHER_ORDER = ("manual_seed(2)", "manual_seed(3)")
CLIP = ("        nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n", "")
FORGETS = ('    optimizer.load_state_dict(saved["optimizer"])\n', "")

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Sandbox:
    return sandbox_of(tmp_path_factory.mktemp("verdicts"), PROGRAM)


def names(found: Fidelity) -> set[str]:
    return {check.name for check in found.checks if check.ok is False}


def test_both_sides_are_started_again_from_their_checkpoints(made, tmp_path):
    found = judged(made, PROGRAM, tmp_path / "honest", ("zero_grad()", "zero_grad(set_to_none=False)"))
    assert found.verdict == "same", found.reasons
    assert "both sides were started again from their checkpoints and compared" in found.notes
    found = judged(made, PROGRAM, tmp_path / "forgets", FORGETS)
    assert "checkpoint" in found.changed
    assert "resumed from checkpoint" in names(found)


def test_lost_clipping_does_not_hide_behind_another_order(made, tmp_path):
    agreed = {"allowed": frozenset({"order"})}
    found = judged(made, PROGRAM, tmp_path / "order", OTHER_ORDER, **agreed)
    assert found.changed == ("order",), found.reasons
    assert any(check.name == "losses in distribution" and check.ok for check in found.checks), found.checks
    found = judged(made, PROGRAM, tmp_path / "lost", OTHER_ORDER, CLIP, **agreed)
    assert {"order", "clipping"} <= set(found.changed)
    assert found.verdict == "changed"


def test_the_projects_metric_is_read_from_a_file_that_the_program_writes(made, tmp_path):
    text = "log.jsonl:$.val"
    held = metric.parse(text, 1e-6, folder=made.baseline)
    found = judged(made, PROGRAM, tmp_path / "same", ("zero_grad()", "zero_grad(set_to_none=False)"), metric=held)
    assert found.verdict == "same", found.reasons
    assert next(check for check in found.checks if check.name == "metric").ok
    found = judged(made, PROGRAM, tmp_path / "moved", ('"val": ends', '"val": ends - 0.1'), metric=held)
    assert found.changed == ("metric",)


def test_records_that_are_written_more_rarely_are_another_cadence(made, tmp_path):
    seldom = (
        '    with open("log.jsonl", "a") as file:',
        '    with open("log.jsonl", "a") if epoch % 2 else open(os.devnull, "w") as file:',
    )
    found = judged(made, PROGRAM, tmp_path / "seldom", seldom)
    assert (found.verdict, found.changed, names(found)) == ("changed", ("cadence",), {"written records"})
    assert "log.jsonl: 4 records → 2" in found.reasons[0]
    agreed = judged(made, PROGRAM, tmp_path / "agreed", seldom, allowed=frozenset({"cadence"}))
    assert agreed.changed == ("cadence",)


def test_an_interrupted_check_goes_on_with_what_it_has(made, tmp_path):
    (sandbox.project_in(made, "candidate") / "train.py").write_text(PROGRAM.replace("zero_grad()", "zero_grad(set_to_none=True)"))
    sandbox.commit_worktree(made, "candidate")
    options = {"baseline_record": Path(made.directory) / "kept", "resume": True}
    first = fidelity.check(made, COMMAND, COMMAND, tmp_path / "runs", **options)
    before = sorted(path.name for path in (tmp_path / "runs").iterdir())
    again = fidelity.check(made, COMMAND, COMMAND, tmp_path / "runs", **options)
    assert (first.verdict, again.verdict) == ("same", "same")
    assert "candidate-2" not in {path.name for path in (tmp_path / "runs").iterdir()}
    assert before


def test_versions_that_end_elsewhere_are_refused_under_several_seeds(made, tmp_path):
    (sandbox.project_in(made, "candidate") / "train.py").write_text(PROGRAM.replace("lr=0.1", "lr=0.3"))
    plan = convergence.Plan(seeds=3, limit_s=600.0)
    found = convergence.check(made, COMMAND, COMMAND, tmp_path / "seeds", plan)
    assert found.ok is False, found.evidence
    (sandbox.project_in(made, "candidate") / "train.py").write_text(PROGRAM)
    assert convergence.check(made, COMMAND, COMMAND, tmp_path / "same", plan).ok
