"""Answers judged by real runs: the expert's counts, and what breaks the training is named."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "evals"))
from harness import attempts, judging, tasks  # noqa: E402

SMALL = ("python", "-m", "ferry", "train", "--config", "configs/base.yaml", "train.epochs=2", "model.layers=1", "model.width=16")
DATA = ("--train", "192", "--valid", "64")


def small(name: str) -> tasks.Task:
    """A task with so little data that a run takes seconds; what is planted into it stays."""
    [task] = tasks.load([name])
    return replace(task, command=SMALL, data=DATA)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    tools = attempts.Tools(Path(sys.executable).parent, None)
    return attempts.environment(tools, tmp_path_factory.mktemp("home"), "nothing")


def changed_by(task: tasks.Task, folder: Path, edits: dict[str, tuple[str, str]]) -> Path:
    """The task's project with text replaced in some files."""
    project = tasks.build(task, folder, seed=tasks.HIDDEN_SEED)
    for relative, (old, new) in edits.items():
        path = project / relative
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    return project


DAMAGE = {
    "fewer evaluations": ("curves", {"configs/base.yaml": ("evaluate_every: 5", "evaluate_every: 10")}, "evaluations instead of"),
    "kept examples": (
        "same_tickets",
        {
            "ferry/data/datasets.py": (
                "    def __getitem__(self, index: int) -> Example:\n",
                "    @__import__('functools').lru_cache(None)\n    def __getitem__(self, index: int) -> Example:\n",
            )
        },
        "losses differ",
    ),
    "fewer updates": (
        "already_good",
        {"ferry/data/sampling.py": ("self.size // self.ranks", "self.size // self.ranks // 2")},
        "updates instead of",
    ),
    "no checkpoint": ("already_good", {"ferry/train/hooks/checkpointing.py": ("if state.ranks.first:", "if False:")}, "final checkpoint"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(name, environment, tmp_path):
    planted, edits, reason = DAMAGE[name]
    task = small(planted)
    before = judging.run(task, tasks.build(task, tmp_path / "plain", seed=tasks.HIDDEN_SEED), environment).folder
    after = judging.run(task, changed_by(task, tmp_path / "changed", edits), environment).folder
    found = judging.differences(task, before, after, environment)
    assert any(reason in each for each in found), found


@pytest.mark.parametrize("name", ["long_threads", "curves", "same_tickets", "order_numbers", "audit_trail"])
def test_what_the_expert_does_trains_the_same(name, environment, tmp_path):
    task = small(name)
    before = judging.run(task, tasks.build(task, tmp_path / "plain", seed=tasks.HIDDEN_SEED), environment).folder
    mended = tasks.build(task, tmp_path / "mended", patches=(tasks.expert_patch(task),), seed=tasks.HIDDEN_SEED)
    after = judging.run(task, mended, environment).folder
    assert judging.differences(task, before, after, environment) == []


def test_an_answer_is_measured_beside_the_expert(environment, tmp_path):
    task = small("same_tickets")
    judged = judging.judge(task, tasks.expert_patch(task), tmp_path, 2, environment)
    assert judged.gates == () and judged.measured.pairs == 2
    assert all(seconds > 0 for seconds in judged.seconds)


def test_the_programs_own_tests_pass(tmp_path):
    project = tasks.build(small("already_good"), tmp_path / "project")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-800:]
