"""Real process trees: which processes work, where they may run, what memory they hold."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

import pytest

from trainflash.launch import footprint, pinning, supervise

SPIN = "while True: pass"
SLEEP = "import time; time.sleep(60)"


@pytest.fixture
def tree():
    """A parent of us with children that run the given sources; the root is the parent."""
    parents = []

    def start(*sources):
        code = "import subprocess, sys, time\nfor source in sys.argv[1:]: subprocess.Popen([sys.executable, '-c', source])\ntime.sleep(60)"
        shell = subprocess.Popen(["sh", "-c", '"$@" & wait', "sh", sys.executable, "-c", code, *sources])
        parents.append(shell)
        deadline = time.monotonic() + 30
        while len(supervise.living(shell.pid)) < 1 + len(sources) or not all(
            sum(threads.values()) > 5_000_000 for threads in pinning.usage(shell.pid).values()
        ):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return shell.pid

    yield start
    for parent in parents:
        supervise.kill(parent.pid)
        parent.kill()
        parent.wait()


def look(root, until_ns=30_000_000):
    """The busy processes over a while in which some process has worked for 30 ms."""
    before = pinning.usage(root)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        after = pinning.usage(root)
        spent = [sum(threads.values()) - sum(before.get(pid, {}).values()) for pid, threads in after.items()]
        if max(spent, default=0) > until_ns:
            break
        time.sleep(0.01)
    return pinning.busy(before, after)


def ends(root, pid):
    """Wait until a killed process no longer counts as living; the kernel may take a while on a busy machine."""
    deadline = time.monotonic() + 30
    while pid in supervise.living(root):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_only_processes_that_work_are_busy(tree):
    root = tree(SPIN, SLEEP)
    deadline = time.monotonic() + 30
    while len(look(root, 100_000_000)) != 1:  # the sleeper's interpreter may still be starting
        assert time.monotonic() < deadline


def test_processes_that_come_or_go_are_not_pinned(tree):
    root = tree(SPIN)
    before = pinning.usage(root)
    gone = supervise.living(root)[-1]
    os.kill(gone, 9)
    ends(root, gone)
    assert pinning.busy(before, pinning.usage(root)) is None


def test_a_process_of_several_busy_threads_is_not_pinned():
    me = os.getpid()
    usage = {me: {1: 0, 2: 0}}
    assert pinning.busy(usage, {me: {1: 100, 2: 10}}) == [me]
    assert pinning.busy(usage, {me: {1: 100, 2: 60}}) is None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_each_busy_process_gets_a_core_of_its_own_and_all_of_them_back(tree):
    roots = (tree(SPIN, SPIN), tree(SPIN, SPIN))
    working = {root: supervise.living(root)[1:] for root in roots}
    pins = pinning.Pins(roots, random.Random(1))
    assert pins.hold(working)
    for _ in range(3):
        pins.draw()
        cores = [[os.sched_getaffinity(pid) for pid in working[root]] for root in roots]
        assert cores[0] == cores[1], "the same on both sides"
        assert all(len(core) == 1 for core in cores[0])
        assert cores[0][0] != cores[0][1]
    pins.release()
    assert all(os.sched_getaffinity(pid) == os.sched_getaffinity(0) for root in roots for pid in working[root])
    assert pins.settled


def test_a_process_that_goes_ends_the_pinning(tree):
    roots = (tree(SPIN, SPIN), tree(SPIN, SPIN))
    working = {root: supervise.living(root)[1:] for root in roots}
    pins = pinning.Pins(roots, random.Random(1))
    if not pins.hold(working):
        pytest.skip("one core")
    pins.draw()
    gone = working[roots[0]][0]
    os.kill(gone, 9)
    ends(roots[0], gone)
    pins.draw()
    assert not pins.settled
    assert not pins.held
    assert os.sched_getaffinity(working[roots[1]][0]) == os.sched_getaffinity(0)


@pytest.mark.parametrize("working", [{1: [5, 6], 2: [7]}, {1: None, 2: [7, 8]}, {1: [5], 2: [7]}, {1: [*range(999)], 2: [*range(999)]}])
def test_unequal_unknown_single_and_too_many_processes_are_not_pinned(working):
    assert not pinning.Pins((1, 2), random.Random(1)).hold(working)


def test_memory_that_a_tree_held_counts_and_shared_memory_counts_once(tree):
    plain = footprint.peak_bytes(tree(SLEEP))
    held = "import time; x = bytearray(80_000_000); x[::4096] = b'1' * len(x[::4096]); del x; import sys; sys.stdin = None; time.sleep(60)"
    root = tree(held)
    deadline = time.monotonic() + 10
    while (had := footprint.peak_bytes(root)) < plain + 60_000_000:
        assert time.monotonic() < deadline, (had, plain)
        time.sleep(0.05)
    forks = (
        "import os, time\nx = bytearray(80_000_000); x[::4096] = b'1' * len(x[::4096])\n"
        "[os.fork() or time.sleep(60) for _ in range(3)]\ntime.sleep(60)"
    )
    root = tree(forks)
    deadline = time.monotonic() + 10
    while len(supervise.living(root)) < 5:
        assert time.monotonic() < deadline
    assert footprint.peak_bytes(root) < 80_000_000 + 4 * plain


def test_a_tree_that_is_gone_has_no_memory():
    assert footprint.peak_bytes(2**22 - 1) is None


def test_the_client_of_a_launching_daemon_is_asked_before_the_tree_is_killed(tmp_path):
    """srun and mpirun end ranks that are no children of theirs only when they are asked to; killed, they could tell nobody."""
    told = tmp_path / "told"
    client = tmp_path / "srun"
    client.write_text(f"#!/bin/sh\ntrap 'echo asked > {told}; exit 0' TERM\necho up > {tmp_path}/up\nwhile :; do sleep 0.05; done\n")
    client.chmod(0o755)
    parent = subprocess.Popen(["sh", "-c", f"{client}; true"])
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "up").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        supervise.freeze(parent.pid)  # as a side of a pair that waits for its turn
        assert supervise.kill(parent.pid) == []
    finally:
        parent.kill()
        parent.wait()
    assert told.read_text() == "asked\n"
