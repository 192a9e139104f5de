"""Real processes that seem to use torch, and whether anybody told the probe of them."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from trainflash.launch import strangers

COMPUTES = "import mmap, sys\nfile = open(sys.argv[1], 'rb')\nheld = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\nwhile True: pass"


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A shell below which one process computes with a file mapped that is named like torch's library."""
    monkeypatch.setattr(strangers, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(strangers, "IMPORT_CPU_S", 0.05)
    monkeypatch.setattr(strangers, "ALONE_CPU_S", 0.05)
    library = tmp_path / "libtorch_cpu.so"
    library.write_bytes(b"nothing")
    shell = subprocess.Popen(
        ["sh", "-c", 'echo $$; "$@" & echo $!; wait', "sh", sys.executable, "-c", COMPUTES, library], stdout=subprocess.PIPE
    )
    assert int(shell.stdout.readline()) == shell.pid
    pid = int(shell.stdout.readline())
    yield shell.pid, pid
    subprocess.run(["kill", "-9", str(pid)], check=True)
    shell.wait()
    shell.stdout.close()


def notices(run_dir):
    file = run_dir / "notice.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_one_that_computes_on_is_told_once_and_then_trains_alone(stranger, tmp_path):
    tree, pid = stranger
    looking = strangers.Strangers(tree, tmp_path)
    deadline = time.monotonic() + 60
    while not looking.train_alone():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert [(each["pid"], "could not enter" in each["notice"]) for each in notices(tmp_path)] == [(pid, True)]


def test_one_that_the_probe_entered_is_no_stranger(stranger, tmp_path):
    tree, pid = stranger
    (tmp_path / "notice.jsonl").write_text(json.dumps({"pid": pid, "notice": "the probe is in"}) + "\n")
    looking = strangers.Strangers(tree, tmp_path)
    began, used = time.monotonic(), 0.0
    while used < 0.5:
        assert not looking.train_alone()
        assert time.monotonic() < began + 60
        used = strangers.supervise.process_stat(pid)[2]
    assert len(notices(tmp_path)) == 1


def test_no_secret_of_a_strangers_command_is_written_down(tmp_path, monkeypatch):
    token = "hf_" + "aBcD" * 9
    monkeypatch.setattr(strangers, "_words_of", lambda pid: ("python", "-I", "train.py", "--hub-token", token))
    strangers.Strangers(1, tmp_path)._tell(7)
    said = (tmp_path / "notice.jsonl").read_text()
    assert token not in said and "train.py --hub-token" in said
