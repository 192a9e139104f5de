from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from trainflash.launch.pacing import Reins

PROBE = Path(__file__).parents[2] / "src" / "trainflash" / "probe"


@pytest.fixture
def pace(monkeypatch):
    monkeypatch.syspath_prepend(str(PROBE))
    monkeypatch.delitem(sys.modules, "trainflash_probe", raising=False)
    import trainflash_probe.pace as module

    yield module
    for name in [name for name in sys.modules if name.startswith("trainflash_probe")]:
        del sys.modules[name]


@pytest.fixture
def reins(tmp_path):
    reins = Reins(tmp_path / "pace")
    yield reins
    reins.close()


class Training(threading.Thread):
    """A training loop of `steps` steps that calls the pacer at each boundary."""

    def __init__(self, pace, reins, steps=50, step_s=0.0):
        super().__init__(daemon=True)
        self.pacer = pace.Pacer(str(reins.directory))
        self.stop, self.steps, self.step_s = pace.TrainFlashStop, steps, step_s
        self.done, self.stopped = 0, False
        self.start()

    def run(self):
        try:
            for step in range(1, self.steps + 1):
                time.sleep(self.step_s)
                self.done = step
                self.pacer.on_boundary(step)
        except self.stop:
            self.stopped = True
        self.pacer.on_exit()

    def ended(self):
        self.join(10)
        return not self.is_alive()


def hear(reins):
    return reins.hear(10, lambda: True)


def test_waits_after_the_first_step_and_runs_exactly_what_is_asked(pace, reins):
    training = Training(pace, reins)
    ready = hear(reins)
    assert ready["ready"] and ready["step"] == 1 and ready["device"] is False
    for steps, at in ((4, 5), (20, 25), (1, 26)):
        reins.tell(f"run {steps}")
        report = hear(reins)
        assert (report["steps"], report["step"]) == (steps, at)
        assert len(report["step_ns"]) == steps
        assert sum(report["step_ns"]) == report["wall_ns"]
        assert training.done == at
    reins.tell("quit")
    assert training.ended()
    assert training.stopped
    assert training.done == 26
    assert reins.hear(0.2, training.is_alive) is None


def test_the_slice_clock_does_not_count_waiting_for_the_launcher(pace, reins):
    Training(pace, reins)
    hear(reins)
    time.sleep(0.3)
    reins.tell("run 5")
    assert hear(reins)["wall_ns"] < 0.25e9


def test_run_queue_wait_is_part_of_wall_time(pace, reins):
    Training(pace, reins, step_s=0.002)
    hear(reins)
    reins.tell("run 10")
    report = hear(reins)
    if report["runq_ns"] is None:
        pytest.skip("this kernel has no schedstat")
    assert 0 <= report["runq_ns"] <= report["wall_ns"]
    assert sum(report["step_runq_ns"]) == report["runq_ns"]
    assert report["wall_ns"] >= 10 * 2e6


def test_the_training_threads_own_cpu_time_is_told_apart(pace, reins):
    """Another thread at work is in the CPU time of the process, not in that of the training thread."""
    over = threading.Event()

    def work():
        while not over.is_set():
            sum(range(1000))

    Training(pace, reins, step_s=0.02)
    hear(reins)
    other = threading.Thread(target=work)
    other.start()
    reins.tell("run 20")
    report = hear(reins)
    over.set()
    other.join()
    assert 0 <= report["thread_cpu_ns"] < report["own_cpu_ns"] / 2
    assert report["device_peak_bytes"] is None


def test_free_never_blocks_again(pace, reins):
    training = Training(pace, reins)
    hear(reins)
    reins.tell("free")
    assert training.ended()
    assert training.done == 50
    assert not training.stopped


def test_the_end_of_the_program_reports_the_steps_there_are(pace, reins):
    training = Training(pace, reins, steps=8)
    hear(reins)
    reins.tell("run 100")
    report = hear(reins)
    assert report["ended"] and (report["steps"], report["step"]) == (7, 8)
    assert training.ended()


def test_only_the_first_process_is_paced(pace, reins):
    first = Training(pace, reins)
    hear(reins)
    second = Training(pace, reins)
    assert second.ended()
    assert second.done == 50
    assert reins.others()
    reins.tell("quit")
    assert first.ended()


def test_a_vanished_launcher_ends_the_training(pace, reins):
    training = Training(pace, reins)
    hear(reins)
    reins.close()
    assert training.ended()
    assert training.stopped and training.done == 1


def test_a_launcher_that_vanishes_within_a_slice_ends_it_at_the_report(pace, reins):
    training = Training(pace, reins, steps=1000, step_s=0.005)
    hear(reins)
    reins.tell("run 20")
    reins.close()
    assert training.ended()
    assert training.stopped and training.done == 21


def test_nobody_there_from_the_start(pace, reins):
    reins.close()
    training = Training(pace, reins)
    assert training.ended()
    assert training.stopped and training.done == 1


def test_a_fork_of_the_training_process_is_not_paced(pace, reins):
    pacer = pace.Pacer(str(reins.directory))
    thread = threading.Thread(target=pacer.on_boundary, args=(1,))
    thread.start()
    hear(reins)
    reins.tell("run 5")
    thread.join(10)
    pid = os.fork()
    if pid == 0:
        for step in range(2, 100):
            pacer.on_boundary(step)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert reins.hear(0.2, lambda: True) is None


def test_nonsense_from_the_launcher_ends_the_training(pace, reins):
    training = Training(pace, reins)
    hear(reins)
    reins.tell("run many")
    assert training.ended()
    assert training.stopped


def test_a_rank_on_another_machine_trains_freely_and_says_so(pace, reins):
    """A FIFO on a shared file system does not reach it; the reins are left to a rank that they do reach."""
    (reins.directory / "host").write_text("another")
    training = Training(pace, reins)
    assert training.ended() and training.done == 50 and not training.stopped
    assert reins.others() and not reins.claimed()
