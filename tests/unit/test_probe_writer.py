"""The events file, and what the stub does to a Python that never trains."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from probe_events import PROBE


def python(code: str, run: Path, **environment: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(PROBE), "TRAINFLASH_RUN": str(run), **environment}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)


WRITE = """
from trainflash_probe import writer
for number in range({count}):
    writer.emit(20)
writer.set_steps(5)
writer.fact("swallowed", places={{}})
"""


def words(run: Path) -> np.ndarray:
    return np.fromfile(next(run.glob("events-*.bin")), dtype="<u8")


def test_a_python_without_torch_writes_nothing_and_loads_nothing(tmp_path):
    done = python("import sys; print([name for name in sys.modules if 'trainflash' in name])", tmp_path)
    assert done.stdout.strip() == "[]", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_it_chains_to_the_sitecustomize_that_it_shadows(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = __file__\n")
    env = {**os.environ, "PYTHONPATH": f"{PROBE}{os.pathsep}{tmp_path / 'site'}", "TRAINFLASH_RUN": str(tmp_path)}
    code = "import sitecustomize; print(mine == sitecustomize.__file__)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "True", done.stderr


def test_a_program_that_only_looks_for_torch_does_not_install_the_probe(tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was run')\n")
    code = "import sys, importlib.util; print(importlib.util.find_spec('torch') is not None, 'trainflash_probe.boot' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": f"{PROBE}{os.pathsep}{tmp_path}", "TRAINFLASH_RUN": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "True False", done.stderr


def test_events_cross_chunks_and_the_head_holds_the_steps(tmp_path):
    done = python(WRITE.format(count=200_000), tmp_path)
    assert done.returncode == 0, done.stderr
    found = words(tmp_path)
    assert found[1] == 5 and found[2] == 0
    times = found[8:][found[8:] != 0] >> 12
    assert len(times) == 200_000 and np.all(np.diff(times.astype(np.int64)) >= 0)


def test_a_disk_that_is_full_ends_the_recording_and_not_the_program(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))\n"
    done = python(limit + WRITE.format(count=200_000) + "print('alive')", tmp_path)
    assert done.stdout.strip() == "alive", done.stderr
    found = words(tmp_path)
    assert found[2] > 0 and found[1] == 5


def test_a_directory_that_cannot_be_written_does_not_end_the_program_either(tmp_path):
    done = python(WRITE.format(count=10_000) + "print('alive')", tmp_path / "absent")
    assert done.stdout.strip() == "alive", done.stderr


def test_a_signal_handler_that_emits_never_takes_the_slot_of_another(tmp_path):
    code = """
import signal
from trainflash_probe import writer
taken = 0
def handler(signo, frame):
    global taken
    taken += 1
    writer.emit(1024)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for number in range(300_000):
    writer.emit(20)
signal.setitimer(signal.ITIMER_REAL, 0)
print(taken)
"""
    done = python(code, tmp_path)
    found = words(tmp_path)[8:] & 0xFFF
    assert np.count_nonzero(found == 20) == 300_000, done.stderr
    assert 0 < np.count_nonzero(found == 1024) <= int(done.stdout)


def test_a_forked_child_writes_its_own_files(tmp_path):
    code = """
import os
from trainflash_probe import writer
os.register_at_fork(after_in_child=writer.after_fork)
for number in range(10):
    writer.emit(20)
pid = os.fork()
for number in range(20):
    writer.emit(22)
if pid:
    os.waitpid(pid, 0)
"""
    assert python(code, tmp_path).returncode == 0
    counts = sorted(np.count_nonzero(np.fromfile(path, dtype="<u8")[8:]) for path in tmp_path.glob("events-*.bin"))
    assert counts == [20, 30]
