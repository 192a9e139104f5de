"""The gate in real repositories: who may make baselines, what a comparison answers, and the written workflow's steps run as shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from gate_documents import OTHER_PROFILE, PROFILE, evaluation, metrics, saved
from owner import User

from trainflash import sandbox as sandboxes
from trainflash.cli import main
from trainflash.errors import UsageError
from trainflash.gate import baselines
from trainflash.sandbox import refs
from trainflash.schema import GateLine, GatePhase, Location

TRAIN = '''"""Fits a small network; nothing is random between runs."""
import time

import torch
from torch import nn

SLOWER = 0.0
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs = torch.randn(128, 256)
targets = inputs.sum(1, keepdim=True)


def rest(spent_ns):
    until = time.thread_time_ns() + SLOWER * spent_ns
    while SLOWER and time.thread_time_ns() < until:
        pass


for step in range(1_000_000):
    began = time.thread_time_ns()
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rest(time.thread_time_ns() - began)
'''
EVALUATE = 'print("val_loss=0.5000")\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A committed project on `main`, in which commands are typed."""
    home, folder = tmp_path / "home", tmp_path / "work" / "project"
    home.mkdir()
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "evaluate.py").write_text(EVALUATE)
    person = User(home, folder)
    person.git("init", "--quiet", "--initial-branch", "main")
    person.git("add", "--all")
    person.git("commit", "--quiet", "--message", "start")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    return person


def typed(capsys, *words):
    """Exit code and the one document of a command, run in this process."""
    capsys.readouterr()
    code = main(["gate", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def head(person):
    return person.git("rev-parse", "HEAD").strip()


def measured(person, tmp_path, name="metrics", **changed):
    document = metrics(commit=head(person), repeats=8, **changed) if name == "metrics" else evaluation(commit=head(person), **changed)
    return str(saved(tmp_path / f"{name}.json", document))


# --- who may make a baseline


def test_the_main_branch_makes_a_baseline(project, tmp_path, capsys):
    files = ("--metrics", measured(project, tmp_path), "--eval", measured(project, tmp_path, "eval"))
    code, answer = typed(capsys, "update-baseline", *files)
    assert (code, answer["status"], answer["by"]) == (0, "ok", "main branch")
    found = baselines.stored(project.project / "bench" / "baselines", PROFILE, "metrics")
    assert (found.provenance.branch, found.provenance.commit) == ("main", head(project))


@pytest.mark.parametrize(
    ("prepare", "changed", "named"),
    [
        (("switch", "--quiet", "--create", "topic"), {}, "this is topic"),
        (("switch", "--quiet", "--detach"), {}, "detached HEAD"),
        (("commit", "--quiet", "--allow-empty", "--message", "next"), {}, "commit is"),
        (None, {"dirty": True}, "dirty"),
        (("branch", "--quiet", "--move", "trunk"), {}, "nobody knows"),
    ],
)
def test_nobody_else_does_without_saying_so(project, tmp_path, capsys, prepare, changed, named):
    path = measured(project, tmp_path, **changed)
    if prepare:
        project.git(*prepare)
    code, answer = typed(capsys, "update-baseline", "--metrics", path)
    assert code == 2 and named in answer["error"]["message"] and "--i-am-maintainer" in answer["error"]["mend"]
    assert not (project.project / "bench").exists()
    code, answer = typed(capsys, "update-baseline", "--metrics", path, "--i-am-maintainer")
    assert (code, answer["by"]) == (0, "maintainer")


def test_the_settings_name_the_main_branch(project, tmp_path, capsys):
    project.git("branch", "--quiet", "--move", "trunk")
    (project.project / "trainflash.toml").write_text('[gate]\nmain_branch = "trunk"\nthroughput_drop_pct = 20\n')
    path = measured(project, tmp_path)
    assert typed(capsys, "update-baseline", "--metrics", path)[0] == 0
    slower = measured(project, tmp_path, step_ms=11.0)
    code, answer = typed(capsys, "compare", "--metrics", slower, "--tolerance", "step_time_increase_pct=20")
    assert code == 0 and {check["limit"] for check in answer["checks"] if check["name"].startswith(("tokens", "step"))} == {20.0}


def test_a_file_of_the_other_kind_is_refused(project, tmp_path, capsys):
    code, answer = typed(capsys, "update-baseline", "--metrics", measured(project, tmp_path, "eval"))
    assert code == 2 and "holds eval" in answer["error"]["message"]
    assert typed(capsys, "update-baseline")[0] == 2


# --- what a comparison answers


@pytest.fixture
def baseline(project, tmp_path, capsys):
    files = ("--metrics", measured(project, tmp_path), "--eval", measured(project, tmp_path, "eval"))
    assert typed(capsys, "update-baseline", *files)[0] == 0
    return project.project / "bench" / "baselines" / f"{PROFILE}.metrics.json"


@pytest.mark.parametrize(
    ("changed", "code", "result"),
    [
        ({}, 0, "pass"),
        ({"step_ms": 12.0}, 4, "fail"),
        ({"step_ms": 10.5}, 3, "inconclusive"),
        ({"memory": 10_000_000_000}, 0, "warn"),
        ({"profile": OTHER_PROFILE}, 3, "inconclusive"),
    ],
)
def test_exit_codes_and_documents(project, baseline, tmp_path, capsys, changed, code, result):
    summary, out = tmp_path / "summary.md", tmp_path / "compare.json"
    path = measured(project, tmp_path, **changed)
    answered, answer = typed(capsys, "compare", "--metrics", path, "--summary", str(summary), "--out", str(out))
    status = {"fail": "rejected", "inconclusive": "inconclusive"}.get(result, "ok")
    assert (answered, answer["result"], answer["status"], answer["schema"]) == (code, result, status, "gate_compare.v1")
    assert summary.read_text().startswith("## ") and json.loads(out.read_text())["result"] == result


def test_a_machine_without_a_baseline_may_be_let_through_with_a_notice(project, baseline, tmp_path, capsys):
    path = measured(project, tmp_path, profile=OTHER_PROFILE)
    capsys.readouterr()
    code = main(["gate", "compare", "--metrics", path, "--allow-missing-baseline", "--annotations"])
    out = capsys.readouterr().out
    assert code == 0 and "::notice title=Performance gate::no metrics baseline" in out


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [('"world_size": 1', '"world_size": 2', "metrics.world_size"), ('"gate_baseline.v1"', '"gate_baseline.v2"', "gate_baseline.v2"),
     ('"step_time_p50_ms": 10.0', '"step_time_p50_ms": NaN', "step_time_p50_ms is nan")],
)  # fmt: skip
def test_a_baseline_edited_by_hand_is_bad_input(project, baseline, tmp_path, capsys, old, new, named):
    baseline.write_text(baseline.read_text().replace(old, new, 1))
    code, answer = typed(capsys, "compare", "--metrics", measured(project, tmp_path))
    assert code == 2 and named in answer["error"]["message"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--tolerance", "throughput_drop_pct=-1"), "throughput_drop_pct"),
        (("--tolerance", "speed=1"), "speed"),
        (("--metrics", "gone.json"), "gone.json"),
        ((), "nothing is named"),
        (("--against", "nothing-like-it", "--", "python", "train.py"), "nothing-like-it"),
        (("--against", "HEAD", "--metrics", "metrics.json", "--", "python", "train.py"), "--against"),
        (("--", "python", "train.py"), "paired mode"),
        (("--against", "HEAD", "--eval-command", "python evaluate.py", "--", "python", "train.py"), "--metric"),
        (("--against", "HEAD", "--budget", "1s", "--", "python", "train.py"), "budget"),
    ],
)
def test_bad_input_is_one_line_and_code_2(project, capsys, words, named):
    ours = words.index("--") if "--" in words else len(words)
    capsys.readouterr()
    code = main(["gate", "compare", *words[:ours], "--json", *words[ours:]])
    answer = json.loads(capsys.readouterr().out)
    assert code == 2 and named in answer["error"]["message"] + answer["error"]["mend"]


def test_a_project_without_git_is_told_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = main(["gate", "compare", "--against", "HEAD", "--json", "--", sys.executable, "train.py"])
    assert code == 2 and "git" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_line_that_moved_is_still_the_same_line(project, tmp_path, capsys):
    """Two lines were added above it, and another line got slower: that one is named."""
    lines = (GateLine(Location("train.py", 24), "Fwd", 8.0), GateLine(Location("train.py", 26), "Bwd", 2.0))
    before = measured(project, tmp_path, lines=lines, phases={"Fwd": GatePhase(8.0, 0.8), "Bwd": GatePhase(2.0, 0.2)})
    assert typed(capsys, "update-baseline", "--metrics", before)[0] == 0
    source = project.project / "train.py"
    source.write_text("# one\n# two\n" + source.read_text())
    lines = (GateLine(Location("train.py", 26), "Fwd", 8.0), GateLine(Location("train.py", 28), "Bwd", 6.0))
    after = measured(project, tmp_path, step_ms=14.0, lines=lines, phases={"Fwd": GatePhase(8.0, 0.57), "Bwd": GatePhase(6.0, 0.43)})
    code, answer = typed(capsys, "compare", "--metrics", after)
    assert code == 4
    [part] = answer["slower"]
    assert (part["phase"], part["location"]["line"], part["line_baseline_ms"], part["line_current_ms"]) == ("Bwd", 28, 2.0, 6.0)


def test_another_commit_is_held_beside_what_git_does_not_know(project):
    """`--against` needs the tracked files of that commit, and the data beside them that no commit holds."""
    first = head(project)
    (project.project / "train.py").write_text("print('new')\n")
    (project.project / "extra.py").write_text("")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "next")
    (project.project / "data.bin").write_bytes(b"data")
    box = sandboxes.create(project.project)
    adopted = refs.adopt(box, refs.commit_named(project.project, "HEAD~1"))
    assert refs.commit_named(project.project, "HEAD~1") == first
    sandboxes.checkout(box, "baseline", adopted)
    there = sandboxes.project_in(box, "baseline")
    assert (there / "train.py").read_text() == TRAIN and not (there / "extra.py").exists()
    assert (there / "data.bin").read_bytes() == b"data"
    assert refs.adopt(box, head(project)) == box.base_ref
    with pytest.raises(UsageError):
        refs.commit_named(project.project, "--all")


def test_the_history_grows_by_a_command(project, tmp_path, capsys):
    for step_ms in (10.0, 10.1):
        code, answer = typed(capsys, "history", "--append", "--metrics", measured(project, tmp_path, step_ms=step_ms), "--label", "v1")
    assert code == 0 and answer["records"] == 2 and answer["result"] == "inconclusive"
    assert (project.project / "bench" / "history.jsonl").read_text().count("\n") == 2


# --- live, with real starts


class Runner:
    """Runs the `run:` steps of one job in a fresh clone, as a GitHub runner would."""

    def __init__(self, person: User, tmp_path: Path) -> None:
        self.person, self.tmp_path, self.count = person, tmp_path, 0
        self.origin = tmp_path / "origin.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", str(person.project), str(self.origin)], check=True)

    def job(self, job: str, branch: str, base: str = "") -> tuple[int, str, str]:
        """Exit code, output and summary."""
        self.count += 1
        clone, temp = self.tmp_path / f"clone-{self.count}", self.tmp_path / f"temp-{self.count}"
        temp.mkdir()
        subprocess.run(["git", "clone", "--quiet", "--branch", branch, str(self.origin), str(clone)], check=True)
        document = yaml.safe_load((clone / ".github" / "workflows" / "perf_gate.yml").read_text())
        summary = temp / "summary.md"
        environment = {**self.person.environment, "RUNNER_TEMP": str(temp), "GITHUB_STEP_SUMMARY": str(summary), "BASE": base,
                       "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # fmt: skip
        said = ""
        for step in document["jobs"][job]["steps"]:
            if "run" in step:
                done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=clone,
                                      env=environment, capture_output=True, text=True, check=False)  # fmt: skip
                said += done.stdout + done.stderr
                if done.returncode:
                    return done.returncode, said, summary.read_text() if summary.exists() else ""
        return 0, said, summary.read_text() if summary.exists() else ""


def pushed(person, runner, branch, **edits):
    person.git("switch", "--quiet", "--create", branch, "main")
    for name, (old, new) in edits.items():
        path = person.project / f"{name}.py"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    person.git("commit", "--quiet", "--all", "--allow-empty", "--message", branch)
    person.git("push", "--quiet", str(runner.origin), branch)
    person.git("switch", "--quiet", "main")


@pytest.fixture
def runner(project, tmp_path):
    """The project with its written workflow, and an origin."""

    def make(*words) -> Runner:
        (project.project / "requirements.txt").write_text("")
        metric = ("--metric", "val_loss=([0-9.]+)", "--eval-command", "python evaluate.py")
        ran = project.trainflash("gate", "ci", *metric, *words, "--", "python", "train.py")
        assert ran.code == 0, ran.err
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "gate")
        return Runner(project, tmp_path)

    return make


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("branch", "edits", "budget", "code", "named"),
    [
        ("same", {}, "40m", 0, "The gate is open"),
        ("slow", {"train": ("SLOWER = 0.0", "SLOWER = 0.15")}, "40m", 4, "step\\_time is"),
        ("worse", {"evaluate": ("0.5000", "0.5200")}, "1m", 4, "val\\_loss"),
    ],
)
def test_the_paired_workflow_in_a_fresh_clone(project, runner, branch, edits, budget, code, named):
    """A worse metric fails the gate whatever the speed, so that case needs no long measurement."""
    hosted = runner("--budget", budget)
    pushed(project, hosted, branch, **edits)
    answered, said, summary = hosted.job("gate", branch, base=head(project))
    assert answered == code, said
    assert named in summary
    assert ("::error" in said) == (code == 4)


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_the_stored_workflow_in_a_fresh_clone(project, runner):
    """On main it makes the baseline and pushes it; a pull request on another machine profile is green with a notice."""
    hosted = runner("--mode", "stored", "--repeat", "2", "--warmup", "10", "--steps", "30")
    answered, said, _ = hosted.job("baseline", "main")
    assert answered == 0, said
    project.git("pull", "--quiet", str(hosted.origin), "main")
    folder = project.project / "bench" / "baselines"
    [path] = folder.glob("*.metrics.json")
    assert (project.project / "bench" / "history.jsonl").exists()
    found = baselines.load(path)
    for kind in ("metrics", "eval"):
        one = baselines.load(folder / f"{found.document.machine_profile}.{kind}.json")
        baselines.write(replace(one, document=replace(one.document, machine_profile=OTHER_PROFILE)), folder, by="maintainer")
        (folder / f"{found.document.machine_profile}.{kind}.json").unlink()
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "baselines of another machine")
    project.git("push", "--quiet", str(hosted.origin), "main")
    pushed(project, hosted, "elsewhere")
    answered, said, summary = hosted.job("gate", "elsewhere", base=head(project))
    assert answered == 0, said
    assert "::notice title=Performance gate::no metrics baseline" in said and OTHER_PROFILE in summary.replace("\\", "")


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_validate_tries_the_promises_here(project):
    ran = project.trainflash(
        "gate", "validate", "--warmup", "10", "--steps", "40", "--json", "--", sys.executable, "train.py", timeout=1800
    )
    checks = {check["name"]: check["ok"] for check in ran.document["checks"]}
    assert checks["1 documents are stable"] and checks["2 traces open"] and checks["3 the gate stops a loss"], ran.out
