"""Connections that leave the machine are reported; those to the machine itself are not."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from trainflash.launch import connections
from trainflash.schema import Command, RunRecord, write_document
from trainflash.workflow import run_notes

CLIENT = (
    "import socket, sys, time; s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); print('there', flush=True); time.sleep(100)"
)


def own_address() -> str:
    """An address of this machine that is not its loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no network")
        return probe.getsockname()[0]


def connected_to(address: str) -> tuple[tuple[str, ...], int]:
    """What is seen of a child that connects to `address`, and the port."""
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]
        # a shell between, as the supervisor stands between us and a program: the tree is what lies below a process
        words = ["sh", "-c", f'"{sys.executable}" -S -c "$0" "$1" "$2"; true', CLIENT, address, str(port)]
        parent = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            assert parent.stdout.readline() == "there\n"
            looking = connections.Connections(parent.pid)
            looking.look()
            return looking.seen(), port
        finally:
            for pid in connections.supervise.living(parent.pid):
                connections.supervise.signal_each([pid], 9)
            parent.wait()


def test_a_connection_that_leaves_the_machine_is_seen_and_others_processes_are_not():
    address = own_address()
    seen, port = connected_to(address)
    assert seen == (f"{address}:{port}",)
    with socket.create_server((address, 0)) as server, socket.create_connection(server.getsockname()):
        child = subprocess.Popen(["sleep", "100"], close_fds=True)
        try:
            looking = connections.Connections(child.pid)
            looking.look()
            assert looking.seen() == ()
        finally:
            child.kill()
            child.wait()


def test_the_loopback_does_not_count():
    assert connected_to("127.0.0.1")[0] == ()


def test_addresses_are_read_as_the_kernel_writes_them():
    assert str(connections._address("0100007F" if sys.byteorder == "little" else "7F000001")) == "127.0.0.1"
    mapped = "0000000000000000FFFF00000100007F" if sys.byteorder == "little" else "00000000000000000000FFFF7F000001"
    assert connections._address(mapped).is_loopback
    assert connections._address("00000000000000000000000001000000").is_loopback or sys.byteorder == "big"


def test_it_looks_no_oftener_than_it_says(monkeypatch):
    now, looks = [100.0], []
    monkeypatch.setattr(connections, "_outward", lambda tree: looks.append(now[0]) or [])
    looking = connections.Connections(1, clock=lambda: now[0])
    for _ in range(25):
        looking.look()
        now[0] += 0.2
    assert len(looks) == pytest.approx(5 / connections.LOOK_EVERY_S, abs=1)


def test_the_owner_is_told_what_was_refused_and_where_it_connected(tmp_path):
    assert run_notes.of(tmp_path) == ()
    record = RunRecord(
        "one", "diagnose", Command(("python", "train.py")), "baseline", "mount", "finished", 0, 1.0, "2025-01-01T00:00:00Z",
        refused_writes=("/data/a", "/data/b", "/data/c", "/data/d"), connections=("192.0.2.7:443",),
        outputs={"runs/model.pt": 90 << 20, "log": 4096}, outputs_files=12, outputs_bytes=95 << 20,
    )  # fmt: skip
    write_document(tmp_path / "run.json", record)
    refused, wrote, connected = run_notes.of(tmp_path)
    assert "12 files, 95 MiB" in wrote and "runs/model.pt, 90 MiB" in wrote
    assert "/data/a, /data/b, /data/c and 1 more" in refused and "`writable`" in refused
    assert "192.0.2.7:443" in connected
