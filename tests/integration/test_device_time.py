"""Device times in real processes: a device that is simulated in real time, and none at all."""

from __future__ import annotations

import numpy as np
import pytest
from probed import plain, probed

from trainflash.summary import summarize


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return probed(tmp_path_factory.mktemp("device") / "run", "simulated_device.py", capture="diagnose")


def test_the_wait_is_given_to_forward_backward_and_update(run):
    assert run.returncode == 0, run.output
    host = {name: float(np.median(values[10:])) / 1e6 for name, values in run.rank.phase_ns.items()}
    assert host["Other"] + host["Log"] > 20, "the host waits in .item()"
    summary = summarize(run.trace, run="r", project="p")
    assert summary.timeline == "device"
    assert not summary.swallowed, summary.swallowed
    found = {name: stat.p50_ms or 0.0 for name, stat in summary.phases.items()}
    assert found["Bwd"] > found["Fwd"] > found["Opt"]
    assert found["Bwd"] > host["Bwd"] + 10
    assert found["Other"] + found["Log"] < (host["Other"] + host["Log"]) / 2
    assert sum(stat.share for stat in summary.phases.values()) == pytest.approx(1)
    assert summary.phases["Bwd"].device_ms == pytest.approx(25, abs=8)
    assert summary.device_time.dropped == 0 and summary.device_time.steps > 20


def test_it_adds_up_to_the_host_in_every_step(run):
    moved = run.rank.device_timeline.moved_ns
    assert moved.any() and not moved.sum(axis=0).any()
    for row, (name, values) in zip(moved, run.rank.phase_ns.items(), strict=True):
        assert (values + row >= 0).all(), name


def test_the_losses_are_the_same(run):
    assert run.output == plain("simulated_device.py")


@pytest.mark.full
def test_a_killed_process_keeps_what_was_drained(tmp_path):
    killed = probed(tmp_path / "run", "simulated_device.py", "die=40", capture="diagnose")
    assert killed.returncode == -9
    rank = killed.rank
    assert rank.steps >= 40
    assert rank.device_timeline.complete[:39].sum() >= 35
    assert np.isfinite(rank.device_timeline.lag_ns[:39]).all()


@pytest.mark.parametrize("capture", ["diagnose", pytest.param("timing", marks=pytest.mark.full)])
def test_a_program_without_a_device_has_no_device_file(tmp_path, capture):
    done = probed(tmp_path / "run", "plain_loop.py", capture=capture)
    assert done.returncode == 0, done.output
    assert not list(done.run_dir.glob("device-*.bin"))
    summary = summarize(done.trace, run="r", project="p")
    assert (summary.timeline, summary.device_time) == ("host", None)
    assert all(stat.device_ms is None for stat in summary.phases.values())
