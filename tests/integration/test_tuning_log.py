"""Several writers at once, and writers that are killed."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainflash import tuning_log
from trainflash.schema import LogEntry

_WRITER = """
import sys
from pathlib import Path
from trainflash import tuning_log
from trainflash.schema import LogEntry

path, name, first, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
for n in range(first, first + count):
    tuning_log.append(path, LogEntry(kind="note", at_utc="", what=f"{name} {n}", why="x" * 20000))
    print(n, flush=True)
"""


def _writer(path: Path, name: str, first: int, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", _WRITER, str(path), name, str(first), str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    writers = [_writer(path, name, 0, 15) for name in "abcd"]
    for writer in writers:
        assert len(writer.communicate(timeout=120)[0].split()) == 15
        assert writer.returncode == 0
    log = tuning_log.read(path)
    assert not log.torn
    for name in "abcd":
        assert [entry.what for entry in log.entries if entry.what.startswith(name)] == [f"{name} {n}" for n in range(15)]


@pytest.mark.full
def test_twenty_kills_lose_no_entry_that_was_promised(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    moment = random.Random(3)
    promised: list[int] = []
    for _ in range(20):
        writer = _writer(path, "w", promised[-1] + 1 if promised else 0, 10_000)
        assert writer.stdout is not None
        promised.append(int(writer.stdout.readline()))
        time.sleep(moment.random() * 0.05)
        os.kill(writer.pid, signal.SIGKILL)
        promised.extend(int(line) for line in writer.stdout.read().split())
        writer.wait()
        written = {entry.what for entry in tuning_log.read(path).entries}
        assert {f"w {n}" for n in promised} <= written


def test_an_entry_that_another_process_is_writing_is_not_mended_away(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    tuning_log.append(path, LogEntry(kind="note", at_utc="", what="first"))
    slow = path.read_bytes().replace(b"first", b"slow")
    with path.open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(slow[:20])
        writer = _writer(path, "other", 0, 1)
        try:
            writer.wait(timeout=1.5)
        except subprocess.TimeoutExpired:
            file.write(slow[20:])
    assert writer.wait(timeout=60) == 0
    assert [entry.what for entry in tuning_log.read(path).entries] == ["first", "slow", "other 0"]
    assert not list(tmp_path.glob("*.torn-*"))
