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
from trainflash.bench import Question
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
RANKS = (
    ("model = torch.nn.Linear(256, 256)", "torch.distributed.init_process_group('gloo')\nmodel = torch.nn.Linear(256, 256)"),
    ("optimizer = ", "model = torch.nn.parallel.DistributedDataParallel(model)\noptimizer = "),
)
WITH_WORKER = """\
import torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
torch.manual_seed(0)
class Parsed(Dataset):
    def __len__(self):
        return 1_000_000
    def __getitem__(self, index):
        value = float(index)
        for power in range(3000):
            value = (value * 1.0001 + power) % 97.0
        return torch.full((32,), value)
model = torch.nn.Linear(32, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for x in DataLoader(Parsed(), batch_size=8, num_workers=1):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
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
    """The budget buys one start or two: they are measured in turns and kept, and nothing is claimed."""
    edit(box, "candidate", LESS_WORK)
    for budget_s in (8.0, 16.0, 32.0):  # the least that a start takes on a machine as busy as this one
        progress, directory = [], tmp_path / f"bench-{budget_s:.0f}"
        runs, verdict = compare(box, directory, budget_s, on_progress=lambda *seen: progress.append(seen))  # noqa: B023
        assert verdict.decision == "inconclusive"
        if runs.starts:
            break
    assert "of at least 4 starts" in verdict.reason
    assert len(runs.starts) < 4
    start = runs.starts[0]
    assert (start.schedule, start.n) == ("resident", 1)
    if start.y is None:  # a machine so busy that four short slices look unsteady, or have no time: kept with its reason
        assert start.reason.startswith("not steady") or "still busy when the budget was over" in start.reason
    else:
        assert start.y > 0.1
        assert start.steps >= 20
        assert start.baseline_startup_s > 0
        assert start.baseline_cpu_s > start.candidate_cpu_s
    assert [to_plain(each) for each in runs.starts] == lines(directory)
    assert read_document(Runs, directory / "runs.json") == runs
    slices = progress[0][2]  # fewer where the first ones took longer
    assert progress[0] == ("speed: start 1, slices", 0, slices) and 4 <= slices <= 12
    assert progress[-1][1:] == (slices, slices) or start.y is None
    assert not list(directory.rglob("events-*.bin")) or start.y is None
    assert leftovers(directory) == []


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
        compare(box, directory, 60, on_progress=lambda *_: 1 // 0, question=Question("a..b"))
    assert leftovers(directory) == []
    starts = [Start(n, "resident", 0.4, 0.4, "net", spent_s=9.0) for n in range(1, 5)]
    text = "".join(json.dumps(to_plain(start)) + "\n" for start in starts)
    (directory / "starts.jsonl").write_text(text + '{"n": 5, "sched')
    runs, verdict = compare(box, directory, 60, resume=True, question=Question("a..b"))
    assert verdict.decision == "accept"
    assert runs.starts == tuple(starts)
    assert "4 of the starts were measured before and count on; none was added" in verdict.reason
    assert (directory / "starts.jsonl").read_text() == text
    assert compare(box, directory, 60, question=Question("a..b"))[1] == verdict, "asked again without resuming, it is no fresh try"
    with pytest.raises(UsageError, match="not those of the starts measured before"):
        compare(box, directory, 60, resume=True, question=Question("a..c"))


def test_without_time_for_one_start_nothing_is_started(box, tmp_path):
    runs, verdict = compare(box, tmp_path / "bench", 1e-6)
    assert verdict.decision == "inconclusive"
    assert "0 of at least 4 starts" in verdict.reason
    assert runs.starts == ()


@pytest.mark.full
@pytest.mark.parametrize(
    ("change", "decision", "said"),
    [
        (
            (("    hidden = inputs\n", "    hidden = inputs\n    while step == 7: pass\n"),),
            "inconclusive",
            "hangs: it came to no step boundary",
        ),
        ((("    loss.backward()\n    optimizer.step()\n", "    pass\n"),), "reject", "ended without training a step"),
    ],
    ids=["hangs", "never reaches backward"],
)
def test_a_candidate_that_delivers_nothing(box, tmp_path, change, decision, said):
    edit(box, "candidate", *change)
    _, verdict = compare(box, tmp_path / "bench", 100, hang_s=2.0)
    assert (verdict.decision, verdict.speedup) == (decision, None)
    assert said in verdict.reason
    assert leftovers(tmp_path / "bench") == []


@pytest.mark.full
def test_sides_of_unlike_versions_are_refused_by_name(box, tmp_path):
    edit(box, "candidate", ("import torch\n", "import torch\ntorch.__version__ = '9.9.9'\n"))
    _, verdict = compare(box, tmp_path / "bench", 100)
    assert verdict.decision == "inconclusive"
    assert "9.9.9 in the candidate" in verdict.reason


@pytest.mark.full
def test_workers_get_a_core_each(box, tmp_path):
    """A program that waits for its one worker: both processes of both copies are pinned, as long as there are two cores."""
    for side in ("baseline", "candidate"):
        (sandbox.project_in(box, side) / "train.py").write_text(WITH_WORKER)
    runs, _ = compare(box, tmp_path / "bench", 200)
    assert any(start.pinned for start in runs.starts) == (len(os.sched_getaffinity(0)) >= 2)
    assert all(start.clock == "wall" for start in runs.starts if start.y is not None)
    assert any(start.baseline_peak_mb for start in runs.starts)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_ranks_run_freely_and_are_frozen_in_turns(box, tmp_path):
    edit(box, "candidate", LESS_WORK)
    for side in ("baseline", "candidate"):
        edit(box, side, *RANKS)
    command = Command((sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py", "100000"))
    runs, verdict = compare(box, tmp_path / "bench", 600, command=command)
    first, *others = runs.starts
    assert "several processes train" in first.reason
    counted = [start for start in others if start.y is not None]
    assert counted, [start.reason for start in others]
    assert {(start.schedule, start.clock) for start in counted} == {("resident", "wall")}
    assert sum(start.y for start in counted) / len(counted) > 0.1
    assert verdict.decision != "reject"
    assert leftovers(tmp_path / "bench") == []


@pytest.mark.full
def test_a_doubled_batch_is_compared_by_sample(box, tmp_path):
    """Twice the samples a step in about twice the time is no speed-up, and would read as half the speed by the step."""
    edit(box, "candidate", ("torch.randn(64, 256)", "torch.randn(128, 256)"))
    runs, verdict = compare(box, tmp_path / "bench", 90, question=Question(work=(64.0, 128.0), unit="sample"))
    counted = [start for start in runs.starts if start.y is not None]
    assert counted, [start.reason for start in runs.starts]
    assert all(start.candidate_step_ms > 1.3 * start.baseline_step_ms for start in counted)
    assert sum(start.y for start in counted) / len(counted) > -0.3
    assert (verdict.unit, runs.unit) == ("sample", "sample")


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
    _, verdict = compare(box, tmp_path / "bench", 250)
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


GROWS = ("    for _ in range(WORK):", "    for _ in range(WORK + step // 15):")


@pytest.mark.full
@pytest.mark.alone
def test_steps_that_get_slower_are_held_to_the_end_of_the_run(box, tmp_path):
    """A candidate that is faster in its first 90 steps, and slower in all: whole runs are timed, and it is not accepted."""
    edit(box, "candidate", ("WORK = 20", "WORK = 14"), GROWS)
    directory = tmp_path / "bench"
    runs, verdict = compare(box, directory, 300.0, question=Question(far=True, run_steps=300))
    seen = bench.course_of(directory, runs.starts)
    verdict = bench.with_costs(verdict, runs.starts, bench.OwnersRun(300), course=seen)
    assert verdict.decision in {"reject", "inconclusive"}
    assert "candidate" in seen.slower and seen.gain_falls
    ended = [start for start in runs.starts if start.run_steps is not None]
    assert ended and {start.run_steps for start in ended} == {300}
    assert verdict.whole_run.by_step[0].speedup > 1 > verdict.whole_run.by_step[-1].speedup
    assert ended[0].candidate_run_s > ended[0].baseline_run_s
