from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trainflash import launch, sandbox
from trainflash.errors import ProgramFailed, UsageError
from trainflash.launch import supervise
from trainflash.schema import Command, RunRecord, read_document

SRC = Path(launch.__file__).parents[2]
ENDED = (None, "Z", "X")


@dataclass
class Plain:
    """A view that shows everything as it is, so that the process part stands alone."""

    cwd: str
    protection: str = "in_place"
    env: dict[str, str] = field(default_factory=dict)
    closed: int = 0

    @property
    def project(self):
        return self.cwd

    def argv(self, argv):
        return list(argv)

    def outputs(self):
        return {}

    def close(self):
        self.closed += 1


@pytest.fixture
def begin(tmp_path):
    started = []

    def start(script, *, argv=None, **options):
        (tmp_path / "program.sh").write_text(textwrap.dedent(script))
        run_dir = tmp_path / f"run{len(started)}"
        run_dir.mkdir()
        command = Command(argv or ("bash", "program.sh"))
        process = launch.start_in(Plain(str(tmp_path)), "baseline", command, run_dir, launch.Recording("timing"), **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.finish()


# sleepers in the background, in a session of their own, and daemonised by a double fork
FAMILY = f"""\
sleep 300 &
setsid sleep 300 &
{sys.executable} -S -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
time.sleep(300)
'
"""


def wait_for(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def states(pids):
    return [stat[1] if (stat := supervise.process_stat(pid)) else None for pid in pids]


def gone(pids):
    return all(state in ENDED for state in states(pids))


def grown(process):
    wait_for(lambda: process.processes() >= 5)
    return supervise.living(process.pid)


def test_output_and_exit_code_are_recorded(begin):
    process = begin("echo out; echo err >&2; printf 'half\\rwhole\\n'; exit 7")
    assert process.wait(20) == 7
    record = process.finish()
    assert (record.status, record.returncode, record.kind) == ("failed", 7, "bench")
    assert record.output_tail == "out\nerr\nwhole"
    assert record.wall_s > 0
    assert read_document(RunRecord, process.run_dir / "run.json") == record
    assert process.view.closed == 1
    assert process.finish() is record


def test_a_program_that_ends_by_a_signal(begin):
    process = begin("kill -SEGV $$")
    assert process.wait(20) == -signal.SIGSEGV
    with pytest.raises(ProgramFailed) as failed:
        launch.require_success(process.finish())
    assert "signal 11" in failed.value.message
    assert failed.value.returncode == -signal.SIGSEGV


def test_failure_shows_the_last_output(begin):
    process = begin("seq 1000; echo the reason >&2; exit 3")
    process.wait(20)
    with pytest.raises(ProgramFailed) as failed:
        launch.require_success(process.finish())
    assert failed.value.output.endswith("the reason")
    assert len(failed.value.output.splitlines()) <= 41
    assert len(process.log.read_text().splitlines()) == 1001


def test_success_passes_through(begin):
    process = begin("true")
    process.wait(20)
    assert launch.require_success(process.finish()).status == "finished"


def test_output_is_redacted_everywhere(begin):
    process = begin("echo token=abc123; exit 1", redact=lambda text: text.replace("abc123", "***"))
    process.wait(20)
    assert process.finish().output_tail == "token=***"
    assert "abc123" not in process.log.read_text()


def test_refused_writes_are_named(begin):
    message = "OSError: [Errno 30] Read-only file system: '/data/cache.bin'"
    process = begin(f'echo "{message}"; exit 1')
    process.wait(20)
    assert process.finish().refused_writes == ("/data/cache.bin",)


def test_the_program_sees_the_probe_and_no_network_clients(begin, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setenv("WANDB_MODE", "disabled")
    monkeypatch.setenv("TRAINFLASH_SEED", "stale")
    process = begin("env")
    process.wait(20)
    seen = dict(line.split("=", 1) for line in process.log.read_text().splitlines() if "=" in line)
    process.finish()
    assert seen["PYTHONPATH"] == f"{launch.PROBE_DIR}:/mine"
    assert seen["TRAINFLASH_RUN"] == str(process.run_dir)
    assert seen["TRAINFLASH_CAPTURE"] == "timing"
    assert seen["WANDB_MODE"] == "disabled"
    assert seen["HF_HUB_OFFLINE"] == "1"
    assert "TRAINFLASH_SEED" not in seen
    assert "TRAINFLASH_PACE" not in seen


def test_online_leaves_the_clients_alone(begin, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    process = begin("env", online=True)
    process.wait(20)
    assert "HF_HUB_OFFLINE" not in process.log.read_text()


def test_freeze_stops_the_whole_tree_and_thaw_lets_it_go_on(begin):
    process = begin(FAMILY)
    pids = grown(process)
    assert process.freeze()
    frozen = [state for state in states(pids) if state not in ENDED]  # the middle of the double fork ends by itself
    assert len(frozen) >= 4 and set(frozen) == {"T"}
    process.thaw()
    wait_for(lambda: "T" not in states(pids))
    assert process.alive()


def test_frozen_programs_are_killed_too(begin):
    process = begin(FAMILY)
    pids = grown(process)
    process.freeze()
    process.kill()
    assert gone(pids)
    record = process.finish()
    assert (record.status, record.returncode) == ("interrupted", -signal.SIGKILL)


def test_what_a_program_leaves_behind_ends_with_it(begin):
    process = begin("setsid sleep 300 &\nsleep 0.3\nexit 0")
    wait_for(lambda: process.processes() >= 2)
    pids = supervise.living(process.pid)
    assert process.wait(30) == 0
    assert gone(pids)


def test_a_program_that_signals_its_own_group_does_not_take_its_record_along(begin):
    process = begin("trap '' TERM; kill -TERM 0; exit 5")
    assert process.wait(20) == 5


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_killed_supervisor(begin, number):
    process = begin("exec sleep 300")
    wait_for(lambda: process.processes() >= 1)
    pids = supervise.living(process.pid)
    os.kill(process.pid, number)
    assert process.wait(20) is not None
    wait_for(lambda: gone(pids))


LAUNCHER = """\
import sys, time
sys.path[:0] = [{src!r}, {here!r}]
from pathlib import Path
from test_launch import FAMILY, Plain
from trainflash import launch
from trainflash.schema import Command
folder = Path({folder!r})
(folder / "program.sh").write_text(FAMILY)
(folder / "run").mkdir()
process = launch.start_in(Plain(str(folder)), "baseline", Command(("bash", "program.sh")), folder / "run", launch.Recording("timing"))
while process.processes() < 5:
    time.sleep(0.02)
{freeze}
print(process.pid, flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("freeze", ["", "process.freeze()"], ids=["running", "frozen"])
def test_nothing_outlives_a_launcher_that_is_killed(tmp_path, freeze):
    code = LAUNCHER.format(src=str(SRC), here=str(Path(__file__).parent), folder=str(tmp_path), freeze=freeze)
    launcher = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        supervisor = int(launcher.stdout.readline())
        wait_for(lambda: len(supervise.living(supervisor)) >= 5)  # a family counts those that have just ended, too
        pids = [supervisor, *supervise.living(supervisor)]
    finally:
        launcher.kill()
        launcher.wait()
        launcher.stdout.close()
    wait_for(lambda: gone(pids))


# --- in a real sandbox, under the real view and probe

TRAIN = """\
import sys
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(int(sys.argv[1])):
    loss = model(torch.ones(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained")
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    project = tmp_path_factory.mktemp("project")
    (project / "train.py").write_text(TRAIN)
    (project / "plain.sh").write_text("true\n")
    git = ["git", "-C", str(project), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "start"], check=True)
    return sandbox.create(project, tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_run_under_the_probe_counts_steps(box, tmp_path):
    seen = []
    command = Command((sys.executable, "train.py", "2000"))
    record = launch.run(box, "baseline", command, tmp_path / "run", capture="timing", on_step=seen.append, timeout=120)
    assert launch.require_success(record).status == "finished"
    assert record.output_tail.endswith("trained")
    assert seen == sorted(set(seen))
    assert launch.steps_so_far(tmp_path / "run") == 2000


def test_run_stops_at_a_step(box, tmp_path):
    command = Command((sys.executable, "train.py", "1000000"))
    record = launch.run(box, "candidate", command, tmp_path / "run", capture="timing", max_steps=50, timeout=120)
    assert record.status == "stopped"
    assert launch.require_success(record).side == "candidate"
    assert launch.steps_so_far(tmp_path / "run") == 50


def test_run_times_out(box, tmp_path):
    record = launch.run(box, "baseline", Command(("sleep", "300")), tmp_path / "run", capture="timing", timeout=0.5)
    assert record.status == "timed_out"
    with pytest.raises(ProgramFailed, match="did not end"):
        launch.require_success(record)


def test_an_interrupted_run_is_recorded_and_ended(box, tmp_path):
    def interrupt(steps):
        raise KeyboardInterrupt

    command = Command((sys.executable, "train.py", "1000000"))
    with pytest.raises(KeyboardInterrupt):
        launch.run(box, "baseline", command, tmp_path / "run", capture="timing", on_step=interrupt, timeout=120)
    assert read_document(RunRecord, tmp_path / "run" / "run.json").status == "interrupted"


@pytest.mark.parametrize("argv", [("no-such-program",), ("./missing.sh",), ("/no/such",), (), ("",)])
def test_a_missing_program_is_refused(box, tmp_path, argv):
    with pytest.raises(UsageError):
        launch.start(box, "baseline", Command(argv), tmp_path / "run", capture="timing")
    assert not (tmp_path / "run").exists()


def test_a_script_that_is_not_executable_is_named(box, tmp_path):
    with pytest.raises(UsageError, match="not executable"):
        launch.start(box, "baseline", Command(("./plain.sh",)), tmp_path / "run", capture="timing")


def test_an_unknown_capture_is_refused(box, tmp_path):
    with pytest.raises(UsageError, match="capture"):
        launch.start(box, "baseline", Command(("true",)), tmp_path / "run", capture="all")
