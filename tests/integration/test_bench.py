from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainflash import bench, sandbox
from trainflash.errors import ProgramFailed, UsageError
from trainflash.launch import supervise
from trainflash.schema import Command, Runs, Start, read_document, to_plain

SRC = Path(bench.__file__).parents[2]

TRAIN = """\
import sys
import torch
WORK = 20
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(64, 256)
for step in range(int(sys.argv[1])):
    hidden = inputs
    for _ in range(WORK):
        hidden = torch.tanh(model(hidden))
    loss = hidden.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LESS_WORK = ("WORK = 20", "WORK = 13")
FAILS = ("    hidden = inputs\n", "    hidden = inputs\n    if step == 30: raise ValueError('no more')\n")
COMMAND = Command((sys.executable, "train.py", "300"))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def box(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    git = ["git", "-C", str(project), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "start"], check=True)
    return sandbox.create(project, tmp_path / "sandbox")


def edit(box, side, *changes):
    path = sandbox.project_in(box, side) / "train.py"
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def compare(box, directory, budget_s, command=COMMAND, **options):
    return bench.compare(box, command, command, directory, budget_s=budget_s, **options)


def lines(directory):
    return [json.loads(line) for line in (directory / "starts.jsonl").read_text().splitlines()]


def leftovers(directory):
    """Processes that still run for this comparison, by the mark that each of ours carries in its environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TRAINFLASH_RUN={directory}".encode() in path.read_bytes() and supervise.process_stat(int(path.parent.name))[1] not in "ZX":
                found.append(int(path.parent.name))
        except (OSError, TypeError):
            continue
    return found


def test_one_start_within_a_small_budget(box, tmp_path):
    """The budget buys one start: it is measured in turns and kept, and nothing is claimed."""
    edit(box, "candidate", LESS_WORK)
    progress = []
    runs, verdict = compare(box, tmp_path / "bench", 3.0, on_progress=lambda *seen: progress.append(seen))
    assert verdict.decision == "inconclusive"
    assert "of at least 4 starts" in verdict.reason
    (start,) = runs.starts
    assert (start.schedule, start.n) == ("resident", 1)
    if start.y is None:  # a machine so busy that four short slices look unsteady: kept with its reason, and counted nowhere
        assert start.reason.startswith("not steady")
    else:
        assert start.y > 0.1
        assert start.steps >= 20
        assert start.baseline_startup_s > 0
        assert start.baseline_cpu_s > start.candidate_cpu_s
    assert [to_plain(start)] == lines(tmp_path / "bench")
    assert read_document(Runs, tmp_path / "bench" / "runs.json") == runs
    assert progress[0] == ("speed: start 1, slices", 0, 12)
    assert progress[-1][1:] == (12, 12)
    assert not list((tmp_path / "bench").rglob("events-*.bin"))
    assert leftovers(tmp_path / "bench") == []


def test_a_candidate_that_cannot_start_is_rejected(box, tmp_path):
    edit(box, "candidate", ("import torch\n", "import no_such_module\nimport torch\n"))
    runs, verdict = compare(box, tmp_path / "bench", 60)
    assert verdict.decision == "reject"
    assert "no_such_module" in verdict.reason
    assert all(start.y is None and "exit code 1" in start.reason for start in runs.starts)
    assert leftovers(tmp_path / "bench") == []


def test_resuming_counts_what_was_measured(box, tmp_path):
    """Five whole lines and one torn by a kill: the verdict comes from the file, without a new start."""
    directory = tmp_path / "bench"
    edit(box, "candidate", LESS_WORK)
    with pytest.raises(ZeroDivisionError):
        compare(box, directory, 60, on_progress=lambda *_: 1 // 0, identity="a..b")
    assert leftovers(directory) == []
    starts = [Start(n, "resident", 0.4, 0.4, "net", spent_s=9.0) for n in range(1, 5)]
    text = "".join(json.dumps(to_plain(start)) + "\n" for start in starts)
    (directory / "starts.jsonl").write_text(text + '{"n": 5, "sched')
    runs, verdict = compare(box, directory, 60, resume=True, identity="a..b")
    assert verdict.decision == "accept"
    assert runs.starts == tuple(starts)
    assert (directory / "starts.jsonl").read_text() == text
    with pytest.raises(UsageError, match="not those of the starts measured before"):
        compare(box, directory, 60, resume=True, identity="a..c")


@pytest.mark.full
def test_less_work_is_accepted(box, tmp_path):
    edit(box, "candidate", LESS_WORK)
    runs, verdict = compare(box, tmp_path / "bench", 400)
    assert verdict.decision == "accept"
    assert 1.3 < verdict.speedup.mean < 1.7
    assert verdict.speedup.starts == sum(start.y is not None for start in runs.starts) >= 4


@pytest.mark.full
def test_more_work_is_rejected(box, tmp_path):
    edit(box, "candidate", ("WORK = 20", "WORK = 30"))
    _, verdict = compare(box, tmp_path / "bench", 400)
    assert verdict.decision == "reject"
    assert verdict.speedup.ci_high < 1


@pytest.mark.full
def test_the_same_program_is_not_accepted(box, tmp_path):
    _, verdict = compare(box, tmp_path / "bench", 120)
    assert verdict.decision in {"reject", "inconclusive"}


@pytest.mark.full
def test_a_candidate_that_fails_half_way_is_rejected(box, tmp_path):
    edit(box, "candidate", FAILS)
    _, verdict = compare(box, tmp_path / "bench", 120)
    assert verdict.decision == "reject"
    assert "no more" in verdict.reason


@pytest.mark.full
def test_a_baseline_that_fails_is_the_programs_failure(box, tmp_path):
    edit(box, "baseline", FAILS)
    with pytest.raises(ProgramFailed) as failed:
        compare(box, tmp_path / "bench", 120)
    assert "no more" in failed.value.output
    assert (tmp_path / "bench" / "runs.json").exists()


@pytest.mark.full
def test_a_program_that_never_trains_is_the_programs_failure(box, tmp_path):
    with pytest.raises(ProgramFailed):
        compare(box, tmp_path / "bench", 120, command=Command((sys.executable, "train.py", "0")))


@pytest.mark.full
def test_a_candidate_that_ends_early_does_not_compare(box, tmp_path):
    edit(box, "candidate", ("range(int(sys.argv[1]))", "range(int(sys.argv[1]) // 4)"))
    _, verdict = compare(box, tmp_path / "bench", 120)
    assert verdict.decision == "inconclusive"
    assert "same number of steps" in verdict.reason


@pytest.mark.full
def test_a_short_program_runs_one_after_the_other(box, tmp_path):
    edit(box, "candidate", LESS_WORK)
    runs, verdict = compare(box, tmp_path / "bench", 400, command=Command((sys.executable, "train.py", "35")))
    assert verdict.decision == "accept"
    assert {start.schedule for start in runs.starts[1:]} == {"sequential"}


@pytest.mark.full
def test_a_killed_comparison_leaves_no_process_and_goes_on_where_it_was(box, tmp_path):
    directory = tmp_path / "bench"
    edit(box, "candidate", LESS_WORK)
    code = (
        f"import sys; sys.path.insert(0, {str(SRC)!r})\n"
        "from pathlib import Path\n"
        "from trainflash import bench, sandbox\n"
        "from trainflash.schema import Command\n"
        f"command = Command({COMMAND.argv!r})\n"
        f"bench.compare(sandbox.load(Path({box.directory!r})), command, command, Path({str(directory)!r}), budget_s=400)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while not (directory / "starts.jsonl").exists() or len(lines(directory)) < 2 or not leftovers(directory):
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + 20
    while left := leftovers(directory):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    before = lines(directory)
    runs, verdict = compare(box, directory, 400, resume=True)
    assert [to_plain(start) for start in runs.starts[: len(before)]] == before
    assert verdict.decision == "accept"
