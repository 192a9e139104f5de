"""What must not slip past the gate: a loss beside what was not compared, another evaluation or step function, a diverged training."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from gate_documents import evaluation, metrics, own_metric, saved

from trainflash import resources
from trainflash.errors import UsageError
from trainflash.gate import baselines, pairs, runner, workflows
from trainflash.gate.comparison import compare
from trainflash.gate.measure import workload
from trainflash.gate.tolerances import ToleranceConfig, from_table
from trainflash.schema import Flops, Start
from trainflash.workflow.gates import checks as gate_checks
from trainflash.workflow.gates import pairs as gate_pairs

DEFAULT = ToleranceConfig()


def loaded(document, kind):
    return baselines.Loaded(kind, document, "measured.json")


@pytest.mark.parametrize("missing", ["metrics", "eval"])
def test_permission_for_a_missing_baseline_lets_no_other_loss_through(tmp_path, missing):
    folder = tmp_path / "baselines"
    known = loaded(evaluation(), "eval") if missing == "metrics" else loaded(metrics(), "metrics")
    baselines.write(known, folder, by="maintainer")
    measured = gate_checks.Measured(
        saved(tmp_path / "m.json", metrics(10.0 if missing == "metrics" else 20.0)),
        saved(tmp_path / "e.json", evaluation(40.0 if missing == "metrics" else 20.0)),
    )
    result = gate_checks.compare(tmp_path, measured, folder, DEFAULT, permitted=True)
    assert result.result == "fail" and not result.compared
    equal = gate_checks.Measured(saved(tmp_path / "m.json", metrics()), saved(tmp_path / "e.json", evaluation()))
    assert gate_checks.compare(tmp_path, equal, folder, DEFAULT, permitted=True).result == "warn"
    assert gate_checks.compare(tmp_path, equal, folder, DEFAULT).result == "inconclusive"


def test_an_evaluation_by_another_command_is_not_compared():
    before = own_metric(1.0)
    for model, wanted in (("tiny", "pass"), ("python easier.py", "inconclusive")):
        after = replace(before, model=model)
        assert compare(loaded(after, "eval"), loaded(before, "eval"), DEFAULT).result == wanted
    renamed = evaluation(model="tiny, as another class")  # a model's name may change: what it says is judged
    assert compare(loaded(renamed, "eval"), loaded(evaluation(), "eval"), DEFAULT).result == "pass"


def test_another_step_function_is_not_compared():
    names = [workload.shown(each) for each in ("steps.py:small", "/somewhere/steps.py:small", "steps.py:large", "pkg.steps:small")]
    assert names == ["steps.py:small", "steps.py:small", "steps.py:large", "pkg.steps:small"]
    assert workload.shown(losses) == "test_gate_slips.py:losses" and "<lambda>" in workload.shown(lambda: None)
    before, after = (metrics(source="step_function", command=(name,)) for name in (names[0], names[2]))
    assert compare(loaded(after, "metrics"), loaded(before, "metrics"), DEFAULT).result == "inconclusive"


def test_true_is_no_tolerance():
    with pytest.raises(UsageError, match="throughput_drop_pct = True"):
        from_table({"throughput_drop_pct": True}, "[gate]")


def test_what_is_joined_is_joined_whole():
    operations = Flops(
        estimator="6ND",
        per_step=1e12,
        counted_per_step=None,
        parameters=1,
        non_embedding_parameters=1,
        achieved_tflops=100.0,
        peak_tflops=200.0,
        peak_source="given",
        dtype="bfloat16",
        mfu_mean=0.5,
        reason="",
    )
    first = metrics(repeats=1, flops=operations, mfu_p50=0.5)
    both = runner.more(first, metrics(20.0, repeats=3, memory=None))
    assert both.memory_peak_bytes is None
    assert both.mfu_p50 == pytest.approx(0.5 * 10.0 / both.step_time_p50_ms)
    assert both.flops.achieved_tflops == pytest.approx(200.0 * both.mfu_p50)


def test_the_runner_compares_what_it_measured_and_not_an_older_file_beside_it(tmp_path, monkeypatch):
    stored = tmp_path / "baselines"
    baselines.write(loaded(evaluation(), "eval"), stored, by="maintainer")
    baselines.write(loaded(metrics(), "metrics"), stored, by="maintainer")
    saved(tmp_path / "eval.json", evaluation(40.0))
    monkeypatch.setattr(runner, "BenchTrain", lambda *given, **named: SimpleNamespace(run=metrics))
    asked = {"out_dir": tmp_path, "baselines_dir": stored, "project": tmp_path}
    alone = runner.BenchRunner().run(["bench", "compare"], **asked)["compare"]
    assert alone["result"] == "pass" and not any(check["gate"] == "quality" for check in alone["checks"])
    assert runner.BenchRunner().run(["compare"], **asked)["compare"]["result"] == "fail"


# --- losses of paired starts


def losses(slope, noise=0.0, seed=0, count=60):
    drawn = random.Random(seed)
    return [(step, 2 + slope * step + drawn.gauss(0, noise)) for step in range(count)]


def judged(before, after, noise=0.0, starts=4):
    both = [(losses(before, noise, seed), losses(after, noise, 100 + seed)) for seed in range(starts)]
    return pairs.stability(both, DEFAULT)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_fails_whichever_start_shows_it(bad):
    good = (losses(-0.01), losses(-0.01))
    diverged = (losses(-0.01), [*losses(-0.01)[:20], (20, bad)])
    found = pairs.stability([good, diverged], DEFAULT)
    assert found.result == "fail" and "at step 21" in found.said


@pytest.mark.parametrize(
    ("before", "after", "noise", "wanted"),
    [(-0.01, -0.01, 0.0, "pass"), (-0.01, 0.0005, 0.0, "pass"), (-0.01, 0.01, 0.0, "fail"), (0.01, 0.0102, 0.0, "pass"),
     (0.01, 0.05, 0.0, "fail"), (0.0, 0.01, 0.1, "fail"), (0.0, 0.003, 0.1, "warn")],
)  # fmt: skip
def test_a_loss_that_rises_as_the_baselines_does_not_fails(before, after, noise, wanted):
    found = judged(before, after, noise)
    assert found.result == wanted, found.said


def test_scatter_fails_nothing():
    drawn = random.Random(7)
    for _ in range(200):
        both = [(losses(0.0, 0.3, drawn.random()), losses(0.0, 0.3, drawn.random())) for _ in range(4)]
        assert pairs.stability(both, DEFAULT).result != "fail"


def test_few_or_no_losses_are_skipped():
    for both in ([], [([], [])], [(losses(0.0), losses(0.5, count=5))], [(losses(0.0)[:5], losses(0.5))]):
        assert pairs.stability(both, DEFAULT).result == "skipped"


def test_the_losses_of_timed_starts_are_found(tmp_path):
    for side, last in (("baseline", 1.0), ("candidate", float("nan"))):
        folder = tmp_path / f"start-01-{side}"
        folder.mkdir()
        lines = [{"rank": rank, "step": step, "losses": [(1.0).hex(), last.hex()]} for rank in (0, 1) for step in range(12)]
        (folder / "work-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = gate_pairs._stability(tmp_path, {"baseline": None, "candidate": None}, gate_pairs.Demands())
    assert found.result == "fail" and "nan at step 1:" in found.said


def test_why_pairs_are_not_clear_is_said_once():
    drawn = random.Random(3)
    starts = [
        Start(n=n, schedule="resident", y=(y := -0.05 + drawn.gauss(0, 0.05)), y_wall=y, clock="net", steps=240, baseline_step_ms=10.0,
              candidate_step_ms=10.0)
        for n in range(4)
    ]  # fmt: skip
    verdict = pairs.judge_by(pairs.limit(DEFAULT))(starts, affordable=4)
    assert verdict.decision == "inconclusive"
    for found in pairs.checks(verdict, starts, None, pairs.Work(), DEFAULT):
        assert found.result == "inconclusive" and found.said.count(verdict.reason) == 1


# --- whose baselines


@pytest.mark.skipif(shutil.which("git") is None, reason="a repository is made")
@pytest.mark.parametrize("has", [True, False])
def test_the_workflow_takes_the_baselines_of_the_base_commit(tmp_path, has):
    template = workflows.template_of(resources.folder("templates") / "ci", "stored")
    text = workflows.rendered(template, workflows.Asked(("python", "train.py"), mode="stored"))
    steps = [step["run"] for step in yaml.safe_load(text)["jobs"]["gate"]["steps"] if "run" in step]
    [take] = [step for step in steps if "git archive" in step]
    [gate] = [step for step in steps if "gate run" in step]
    assert '--baselines "$RUNNER_TEMP/base/bench/baselines"' in gate and steps.index(take) < steps.index(gate)
    clone, temp = tmp_path / "clone", tmp_path / "temp"
    (clone / "bench" / "baselines").mkdir(parents=True)
    temp.mkdir()
    kept = clone / "bench" / "baselines" / "machine.metrics.json"
    (kept if has else clone / "train.py").write_text("the base's")
    base = _commit(clone)
    (clone / "bench" / "baselines").mkdir(parents=True, exist_ok=True)
    kept.write_text("the pull request's")
    _commit(clone)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "RUNNER_TEMP": str(temp), "BASE": base, "HOME": str(tmp_path)}
    subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", take], cwd=clone, env=environment, check=True)
    found = [path.read_text() for path in temp.rglob("*.json")]
    assert found == (["the base's"] if has else [])


def _commit(folder: Path) -> str:
    def git(*words: str) -> str:
        said = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        return subprocess.run(["git", *said, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "state")
    return git("rev-parse", "HEAD")
