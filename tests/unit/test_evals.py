"""The evals' arithmetic and gates, and that every task can be built, planted and mended."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "evals"))
from harness import attempts, judging, scores, table, tasks  # noqa: E402

SECONDS = st.floats(0.1, 1e4)
TASKS = tasks.load()


@given(SECONDS, SECONDS, SECONDS)
def test_a_share_of_the_experts_saving_lies_between_nothing_and_all(before, after, expert):
    share = scores.share_of_expert(before, after, expert)
    assert 0.0 <= share <= 1.0
    assert share == 0.0 or after < before
    assert after > expert or expert >= before or share == 1.0


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=2, max_size=12))
def test_an_interval_holds_its_mean_and_turns_with_the_sides(pairs):
    found, turned = scores.ratio(pairs), scores.ratio([(right, left) for left, right in pairs])
    assert found.low <= found.mean * (1 + 1e-9) and found.mean <= found.high * (1 + 1e-9)
    assert math.isclose(found.mean * turned.mean, 1.0, rel_tol=1e-6)


def test_too_few_pairs_are_no_measurement():
    assert scores.ratio([]) is None and scores.ratio([(2.0, 1.0)]) is None
    assert scores.claim_error(2.0, None) is None and scores.claim_error(None, scores.Ratio(2, 1.9, 2.1, 4)) is None


def test_calibration_keeps_only_what_can_be_scored():
    even, biased = scores.Ratio(1.0, 0.97, 1.03, 4), scores.Ratio(1.1, 1.05, 1.15, 4)
    assert scores.calibrated(even, scores.Ratio(1.5, 1.3, 1.7, 4), healthy=False) == ""
    assert "expert" in scores.calibrated(even, scores.Ratio(1.2, 1.09, 1.3, 4), healthy=False)
    assert "expert" in scores.calibrated(even, None, healthy=False)
    assert "equal" in scores.calibrated(biased, scores.Ratio(1.5, 1.3, 1.7, 4), healthy=False)
    assert "equal" in scores.calibrated(None, None, healthy=True)
    assert scores.calibrated(even, None, healthy=True) == ""


def test_a_healthy_program_is_best_left_alone():
    assert scores.healthy_share(None, None) == scores.healthy_share(1.0, None) == 1.0
    assert scores.healthy_share(1.4, None) == 0.0
    assert scores.healthy_share(1.4, scores.Ratio(1.01, 0.98, 1.04, 4)) == 0.0
    assert scores.healthy_share(1.4, scores.Ratio(1.4, 1.3, 1.5, 4)) == 1.0


def score(task: str, arm: str, value: float, *gates: str) -> scores.Score:
    return scores.Score(task, arm, value, gates, scores.Ratio(1.5, 1.4, 1.6, 4), 3.0, math.log(2.0), 4.0, None)


def test_arms_are_compared_paired_by_task_and_the_table_names_failed_gates():
    every = [score("a", "nothing", 0.2), score("a", "nothing", 0.4), score("a", "skills", 0.9), score("b", "nothing", 0.5)]
    every.append(score("b", "skills", 0.0, "the original was changed"))
    assert scores.over_tasks(every, "nothing") == pytest.approx({"a": 0.3, "b": 0.5})
    gain, interval = scores.difference(every, "skills", "nothing")
    assert gain == pytest.approx((0.6 - 0.5) / 2) and interval[0] <= gain <= interval[1]
    text = table.results(every, {"c": "too quick"}, "agent --print", uncalibrated=True, in_sight=True)
    for expected in ("the original was changed (1)", "c: too quick", "prove nothing", "within reach", "| 2.00 |", "not measured"):
        assert expected in text


def test_what_the_bare_assistant_solves_is_dropped():
    every = [score("easy", "nothing", 0.95), score("easy", "skills", 1.0), score("hard", "nothing", 0.1), score("hard", "skills", 0.6)]
    assert list(scores.too_easy(every)) == ["easy"]
    text = table.results(every, {}, "agent", uncalibrated=False, in_sight=False)
    assert "- easy: solved to 95%" in text and "+0.50" in text


def test_the_tasks_are_of_every_kind_and_large_enough():
    kinds = {task.kind for task in TASKS}
    assert kinds >= {"data", "cadence", "one rank", "environment", "tempting fix", "layout", "a thread beside", "healthy"}
    assert all(task.healthy == (tasks.expert_patch(task) is None) for task in TASKS)
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tasks.BASE.rglob("*.py"))
    assert lines > 1500
    for task in TASKS:
        given = task.request + (tasks.BASE / "README.md").read_text(encoding="utf-8")
        assert task.note not in given


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_task_can_be_built_and_mended_and_its_data_differ_from_the_hidden(task, tmp_path, monkeypatch):
    patch = tasks.expert_patch(task)
    shown = tasks.build(task, tmp_path / "shown")
    hidden = tasks.build(task, tmp_path / "hidden", patches=(patch,) if patch else (), seed=tasks.HIDDEN_SEED)
    assert (shown / "data/train.jsonl").read_bytes() != (hidden / "data/train.jsonl").read_bytes()
    changed = {path for path in judging.touched(patch)} if patch else set()
    assert not [path for path in changed if judging.OFF_LIMITS.search(path)]
    for path in shown.rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
    assert not list(shown.rglob("*.diff")) and not list(shown.rglob("task.json"))


@pytest.mark.parametrize(
    ("patch", "gate"),
    [
        ("--- a/tests/test_ferry.py\n+++ b/tests/test_ferry.py\n@@ -1 +1 @@\n-x\n+y\n", "touches tests/"),
        ("--- a/data/train.jsonl\n+++ b/data/train.jsonl\n@@ -1 +1 @@\n-x\n+y\n", "touches data/"),
        ("--- a/ferry/nowhere.py\n+++ b/ferry/nowhere.py\n@@ -1 +1 @@\n-x\n+y\n", "does not apply"),
        ("--- a/../outside.py\n+++ b/../outside.py\n@@ -0,0 +1 @@\n+y\n", "does not apply"),
    ],
)
def test_patches_that_reach_too_far_fail_a_gate_before_anything_runs(tmp_path, patch, gate):
    (tmp_path / "patch.diff").write_text(patch)
    judged = judging.judge(TASKS[0], tmp_path / "patch.diff", tmp_path / "work", 2, {})
    assert len(judged.gates) == 1 and gate in judged.gates[0] and judged.seconds is None
    assert not (tmp_path / "outside.py").exists()


def test_an_empty_answer_is_no_change(tmp_path):
    (tmp_path / "patch.diff").write_text("\n")
    assert judging.judge(TASKS[0], tmp_path / "patch.diff", tmp_path / "work", 2, {}) == judging.Judged((), None, None)


AGENT = """\
import json, pathlib, subprocess, sys
prompt, answer = sys.argv[1:3]
answer = pathlib.Path(answer)
(answer / "seen.json").write_text(json.dumps({
    "evals": sorted(path.name for path in pathlib.Path(sys.argv[3]).iterdir()),
    "here": sorted(path.name for path in pathlib.Path().iterdir()),
    "tool": subprocess.run(["sh", "-c", "command -v trainflash"], capture_output=True, text=True).stdout.strip()}))
(answer / "answer.json").write_text('{"speedup": 2.5, "tokens": 17}')
(answer / "patch.diff").write_text("")
if "meddle" in sys.argv:
    pathlib.Path("ferry/config.py").write_text("")
"""


@pytest.mark.parametrize("meddling", [False, True], ids=["honest", "meddling"])
def test_an_attempt_keeps_the_scorer_out_of_sight_and_sees_what_was_changed(tmp_path, meddling):
    (tmp_path / "agent.py").write_text(AGENT)
    tools = attempts.Tools(Path(sys.executable).parent, None)
    agent = f"python {tmp_path / 'agent.py'} {{prompt}} {{answer}} {tasks.HERE} {'meddle' if meddling else ''}"
    hides = bool(attempts._hiding())
    made = attempts.attempt(TASKS[0], "nothing", 0, agent, tools, 5.0, tmp_path / "work", must_hide=False)
    seen = json.loads((tmp_path / "work/answer/seen.json").read_text())
    assert made.exit_code == 0 and made.claimed == 2.5 and made.tokens == 17
    assert made.gates == (("the original was changed",) if meddling else ())
    assert made.hidden is hides and (seen["evals"] == []) is hides
    assert seen["tool"] == "" and "ferry" in seen["here"] and "CLAUDE.md" not in seen["here"]
    assert TASKS[0].request in (tmp_path / "work/prompt.txt").read_text()


def test_an_arm_without_the_tool_it_needs_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--trainflash"):
        attempts.environment(attempts.Tools(Path(sys.executable).parent, None), tmp_path, "cli")


@pytest.mark.parametrize(
    "line", [["--task", "nothing-such"], [], ["--agent", "x"], ["--agent", "x", "--uncalibrated", "--trainflash", "no/such/command"]]
)
def test_bad_use_is_said(tmp_path, line):
    done = subprocess.run(
        [sys.executable, str(ROOT / "evals/run.py"), *line, "--out", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stderr.startswith("evals: ") and "Traceback" not in done.stderr
