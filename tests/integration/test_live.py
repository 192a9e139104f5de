"""Running trainings watched from outside: real processes, real stacks, real deadlocks."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from probed import PROGRAMS, environment

from trainflash.errors import UsageError
from trainflash.live import window
from trainflash.schema import Live
from trainflash.telemetry import processes
from trainflash.workflow import watching

PATIENCE_S = 60


# A library as it is installed, and programs that use it. It computes long enough for samples of a busy machine.
AUGMENTS = """
class Elastic:
    def __call__(self, index):
        value = float(index)
        for power in range(20000):
            value = (value * 1.0001 + power) % 97.0
        return value
"""
TRAINS = """
class Trainer:
    def fit(self, model, optimizer, batches):
        for epoch in range(10**9):
            for x, y in batches:
                loss = ((model(x) - y) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if epoch == 0:
                    print("ready", flush=True)
"""
USES = """
import sys
import threading

import torch
from augmentlib.transforms import Elastic
from torch import nn
from torch.utils.data import DataLoader, Dataset
from trainerlib.trainer import Trainer

torch.set_num_threads(1)


class Points(Dataset):
    def __init__(self, change):
        self.change = change

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((8,), self.change(index) / 97.0), torch.ones(1)


def deeper(index, left):
    return deeper(index, left - 1) if left else Elastic()(index)


def deep(index):
    sys.setrecursionlimit(20_000)
    return deeper(index, int(sys.argv[2]))


def main(change, workers=0):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.Adam(model.parameters())
    batches = DataLoader(Points(change), batch_size=4, num_workers=workers, persistent_workers=workers > 0)
    Trainer().fit(model, optimizer, batches)


mode = sys.argv[1]
if mode == "thread":
    thread = threading.Thread(target=main, args=(Elastic(),), daemon=True)
    thread.start()
    thread.join()
elif mode == "string":
    exec("main(lambda index: Elastic()(index))")
else:
    main(deep if mode == "deep" else Elastic(), int(mode == "worker"))
"""


@pytest.fixture
def using(tmp_path):
    """Starts the program that uses the library, with these arguments."""
    for name, text in (("augmentlib/transforms.py", AUGMENTS), ("trainerlib/trainer.py", TRAINS)):
        file = tmp_path / "site-packages" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    (tmp_path / "train.py").write_text(USES)
    path = os.pathsep.join(filter(None, [str(tmp_path / "site-packages"), os.environ.get("PYTHONPATH")]))
    return lambda *words: running(sys.executable, tmp_path / "train.py", *words, cwd=tmp_path, PYTHONPATH=path)


@contextlib.contextmanager
def running(*command: object, quiet: bool = False, words: int = 1, cwd: Path = PROGRAMS, **extra: str) -> Iterator[int]:
    """A process that has said `ready` so many times; with `quiet`, none of its tree computes any more."""
    started = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env=environment(**extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        heard = b""
        while heard.count(b"ready") < words:
            assert select.select([started.stdout], [], [], PATIENCE_S)[0], heard
            part = os.read(started.stdout.fileno(), 4096)
            assert part, heard
            heard += part
        if quiet:
            wait_until_quiet(started.pid)
        yield started.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        for pid in processes.tree([started.pid]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        started.communicate()


def training(mode: str, *arguments: object, **options):
    return running(sys.executable, PROGRAMS / "live.py", mode, *arguments, **options)


def wait_until_quiet(pid: int) -> None:
    """Until no thread of the tree has computed for a second; nothing else says that a lock is being waited for."""
    deadline = time.monotonic() + PATIENCE_S
    seen = None
    while time.monotonic() < deadline:
        now = [sum(round(each.run_s, 2) for each in window.counters(member).values()) for member in processes.tree([pid])]
        if now == seen:
            return
        seen = now
        threading.Event().wait(1.0)
    raise AssertionError("the program did not come to rest")


def watched(pid: int, seconds: float = 5) -> Live:
    return watching.watch(pid, seconds)


def first(found: Live):
    assert found.abstained is None and found.lacks == ()
    return found.findings[0]


def line(text: str) -> int:
    lines = (PROGRAMS / "live.py").read_text().splitlines()
    [number] = [n for n, each in enumerate(lines, 1) if each.strip() == text]
    return number


@pytest.mark.full
def test_one_pegged_worker_computes():
    with training("pegged") as pid:
        found = watched(pid)
    finding = first(found)
    assert (finding.kind, finding.bound_by) == ("input_cpu", "input")
    assert finding.location.file == "live.py" and finding.location.function == "parse"
    assert finding.share > 0.5
    roles = {process.role: process for process in found.processes}
    assert roles["training"].pid == pid and found.taken == (pid,)
    assert roles["worker"].samples > 20 and roles["worker"].cpu > roles["training"].cpu
    assert max(roles["training"].doing, key=roles["training"].doing.get) == "waiting for data"


@pytest.mark.full
def test_single_looks_stand_in_for_a_recording_that_fails(tmp_path, monkeypatch):
    spy = tmp_path / "py-spy"
    spy.write_text(f'#!/bin/sh\n[ "$1" = dump ] && exec {window.find_spy()} "$@"\nexit 1\n')
    spy.chmod(0o755)
    monkeypatch.setattr(window, "find_spy", lambda: str(spy))
    with training("serial") as pid:
        found = watched(pid, seconds=2)
    finding = first(found)
    assert (finding.kind, finding.location.function) == ("input_cpu", "parse")


@pytest.mark.full
def test_a_transform_in_the_main_process_computes():
    with training("serial") as pid:
        finding = first(watched(pid))
    assert (finding.kind, finding.location.function) == ("input_cpu", "parse")


@pytest.mark.full
def test_main_and_worker_idle_wait_for_a_slow_source(tmp_path):
    fifo = tmp_path / "source"
    os.mkfifo(fifo)
    ended = threading.Event()

    def feed():
        with fifo.open("r+b", buffering=0) as source:
            while not ended.wait(0.03):
                source.write(b"1")

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        with training("fifo", fifo) as pid:
            finding = first(watched(pid))
    finally:
        ended.set()
        feeder.join()
    assert (finding.kind, finding.bound_by) == ("input_io", "io")
    assert finding.location.function == "receive"


@pytest.mark.full
def test_a_worker_that_reads_and_gets_nothing_is_hung_not_slow(tmp_path):
    fifo = tmp_path / "source"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDWR)
    try:
        with training("stuck", fifo, quiet=True) as pid:
            found = watched(pid)
    finally:
        os.close(held)
    finding = first(found)
    assert (finding.kind, finding.bound_by, finding.phase) == ("hung", "io", "Data")
    assert finding.location.line == line("return source.read(1)[0]")
    assert str(fifo) in finding.summary
    assert all(process.still for process in found.processes)


@pytest.mark.full
def test_a_lock_that_was_forked_while_taken():
    with training("forked", quiet=True) as pid:
        finding = first(watched(pid))
    assert (finding.kind, finding.location.function) == ("hung", "locked_source")
    assert "forked" in finding.summary


@pytest.mark.full
def test_a_program_that_waits_for_somebody_to_type():
    with training("typing", quiet=True) as pid:
        finding = first(watched(pid))
    assert finding.kind == "hung" and "type" in finding.summary


@pytest.mark.full
def test_one_rank_elsewhere_than_the_collective():
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--standalone")
    with running(*launcher, PROGRAMS / "live.py", "ranks", words=2, quiet=True) as pid:
        found = watched(pid)
    finding = first(found)
    assert (finding.kind, finding.bound_by) == ("hung", "communication")
    assert finding.location.line == line("time.sleep(600)")
    assert "rank 1 stands at live.py" in finding.summary and "all_reduce" in finding.summary
    assert [process.role for process in found.processes].count("training") == 2
    assert [process.role for process in found.processes].count("launcher") == 1


def test_a_healthy_loop_is_not_accused():
    with training("healthy") as pid:
        found = watched(pid)
    assert first(found).kind == "compute" and first(found).severity == "none"
    assert not found.processes[0].still


def test_the_training_below_a_shell_script_is_taken(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text(f"cd {PROGRAMS}\n{sys.executable} live.py healthy\nexit 0\n")
    with running("bash", script) as pid:
        found = watched(pid, 2)
    assert len(found.taken) == 1 and found.taken[0] != pid
    assert found.notes == (f"process {pid} is bash; {found.taken[0]} below it is watched",)


def test_a_pid_that_is_no_python():
    with running("sh", "-c", "echo ready; sleep 1000") as pid, pytest.raises(UsageError, match="is not Python") as told:
        watched(pid)
    assert told.value.exit_code == 2


def test_a_pid_that_is_gone_or_a_zombie():
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(UsageError, match="has ended"):
        watched(ended.pid)
    ended.wait()
    with pytest.raises(UsageError, match="there is no process"):
        watched(ended.pid)


@pytest.mark.parametrize("pid", [0, -5])
def test_a_pid_that_cannot_be(pid):
    with pytest.raises(UsageError, match="is no process"):
        watched(pid)


def test_a_program_that_ends_while_it_is_watched():
    with (
        running(sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(1.5)") as pid,
        pytest.raises(UsageError, match="ended after"),
    ):
        watched(pid, 20)


@pytest.mark.full
def test_without_permission_the_rest_is_still_said(tmp_path, monkeypatch):
    refusing = tmp_path / "py-spy"
    refusing.write_text("#!/bin/sh\necho 'Permission Denied: Try running again with elevated permissions' >&2\nexit 1\n")
    refusing.chmod(refusing.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(window, "find_spy", lambda: str(refusing))
    with training("pegged") as pid:
        found = watched(pid)
    [lack] = found.lacks
    assert lack.what.startswith("stacks") and lack.mend
    assert found.abstained == "no stacks could be taken"
    assert {process.role for process in found.processes} == {"training", "worker"}
    assert all(process.samples == 0 and process.cpu >= 0 for process in found.processes)
    assert found.sites == ()


@pytest.mark.full
def test_a_lock_taken_twice_said_by_the_command_line(tmp_path):
    with training("deadlock", quiet=True) as pid:
        done = subprocess.run(
            [sys.executable, "-m", "trainflash", "diagnose", "--pid", str(pid), "--seconds", "5", "--json"],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {"schema", "status", "processes", "findings", "abstained", "lacks"} <= document.keys()
    assert (document["schema"], document["status"]) == ("live.v1", "ok")
    [finding] = document["findings"]
    assert (finding["kind"], finding["location"]["file"], finding["location"]["function"]) == ("hung", "live.py", "deadlock")
    assert "lock" in finding["summary"]
    assert [each for each in finding["evidence"] if str(pid) in each["name"] and "live.py" in each["value"]]
    assert "watching" in done.stderr
    assert sorted(Path(tmp_path).iterdir()) == []


def used(text: str) -> int:
    """The line of the program that uses the library."""
    [number] = [n for n, each in enumerate(USES.splitlines(), 1) if each.strip() == text]
    return number


def names_the_transform(site) -> bool:
    return [place.file for place in site.path][-1:] == ["augmentlib/transforms.py"]


TRANSFORM = "return torch.full((8,), self.change(index) / 97.0), torch.ones(1)"


def test_a_librarys_transform_below_the_owners_line_is_named(using):
    with using("serial") as pid:
        found = watched(pid)
    site, finding = found.sites[0], first(found)
    assert (site.role, site.phase, site.location.line) == ("main", "Data", used(TRANSFORM))
    assert names_the_transform(site) and site.path[-1].function.endswith("__call__")
    assert (finding.kind, finding.location) == ("input_cpu", site.location)
    assert "(augmentlib/transforms.py:" in finding.summary and finding.evidence[-1].name == "calls"


@pytest.mark.full
def test_a_librarys_trainer_runs_the_loop(using):
    with using("serial") as pid:
        found = watched(pid, 10)
    inside = {site.location.file for site in found.sites if site.under}
    assert inside <= {"trainerlib/trainer.py"}
    assert {site.under.line for site in found.sites if site.under} <= {used("Trainer().fit(model, optimizer, batches)")}
    assert inside, [str(site.location) for site in found.sites]


@pytest.mark.full
def test_a_librarys_transform_in_a_worker_is_named(using):
    with using("worker") as pid:
        found = watched(pid)
    [worker] = [site for site in found.sites if site.role == "worker" and site.location.line == used(TRANSFORM)]
    assert names_the_transform(worker)
    finding = first(found)
    assert (finding.kind, finding.location) == ("input_cpu", worker.location)
    assert finding.summary.endswith("of the workers' time.")


@pytest.mark.full
def test_a_training_in_a_thread_beside_the_main_one(using):
    with using("thread") as pid:
        found = watched(pid)
    [process] = found.processes
    assert process.beside not in (None, pid) and process.still is False
    assert first(found).kind == "input_cpu", "the main thread, which waits for it, is not looked at"
    assert found.sites[0].location.line == used(TRANSFORM) and names_the_transform(found.sites[0])


@pytest.mark.full
def test_recursion_thousands_deep(using):
    with using("deep", 3000) as pid:
        found = watched(pid)
    site = found.sites[0]
    assert (site.phase, site.location.function, site.under) == ("Data", "deeper", None)
    assert names_the_transform(site) and len(site.path) == 1


@pytest.mark.full
def test_recursion_deeper_than_stacks_are_read_is_said(using):
    with using("deep", 9000) as pid:
        found = watched(pid)
    assert found.lacks and "4,096 frames" in found.lacks[0].why + found.lacks[0].mend
    [process] = found.processes
    assert process.role == "training" and process.cpu > 0


@pytest.mark.full
def test_code_without_a_file(using):
    with using("string") as pid:
        found = watched(pid)
    assert first(found).kind == "input_cpu"
    assert found.sites[0].location.line == used(TRANSFORM) and names_the_transform(found.sites[0])
