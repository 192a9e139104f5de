"""The probe in real programs on a CUDA device: the training is the same, and its device times are there."""

from __future__ import annotations

import re

import pytest
from probed import plain, probed

from trainflash.summary import summarize

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _cuda():
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no CUDA device")


def losses(output: str) -> list[str]:
    return re.findall(r"^(?:\d+|graph|graph breaks) \S+$", output, re.M)


def run_both(tmp_path, *arguments: str):
    done = probed(tmp_path / "run", "cuda_loop.py", *arguments, capture="diagnose")
    assert done.returncode == 0, done.output
    expected = losses(plain("cuda_loop.py", *arguments))
    assert len(expected) >= 60
    assert losses(done.output) == expected
    return done


def test_device_times_of_a_plain_loop(tmp_path):
    done = run_both(tmp_path)
    summary = summarize(done.trace, run="r", project="p")
    assert summary.device.startswith("cuda:")
    assert summary.timeline == "device"
    assert summary.device_time.dropped == 0
    assert not [place for place in summary.swallowed if "device" in place]
    assert sum(stat.share for stat in summary.phases.values()) == pytest.approx(1)
    assert summary.phases["Bwd"].device_ms > summary.phases["Fwd"].device_ms > 0
    moved = done.rank.device_timeline.moved_ns
    assert not moved.sum(axis=0).any()


def test_a_captured_graph_is_left_alone(tmp_path):
    done = run_both(tmp_path, "graph=30")
    assert "graph " in done.output
    summary = summarize(done.trace, run="r", project="p")
    assert summary.timeline == "device"
    assert done.rank.device_timeline.dropped > 0
    assert not [place for place in summary.swallowed if "device" in place]


def test_mixed_precision_with_a_scaler(tmp_path):
    summary = summarize(run_both(tmp_path, "amp=1").trace, run="r", project="p")
    assert summary.timeline == "device"
    assert summary.updates is None or summary.updates.grad_scaler


@pytest.mark.full
def test_compiled_on_cuda(tmp_path):
    summary = summarize(run_both(tmp_path, "compile=1").trace, run="r", project="p")
    assert summary.timeline == "device"


def test_a_cpu_program_beside_a_device_does_not_touch_it(tmp_path):
    done = probed(tmp_path / "run", "plain_loop.py", "steps=80", capture="diagnose")
    assert done.returncode == 0, done.output
    assert not list(done.run_dir.glob("device-*.bin"))
    assert summarize(done.trace, run="r", project="p").timeline == "host"


def test_capture_timing_has_no_events(tmp_path):
    done = probed(tmp_path / "run", "cuda_loop.py", capture="timing")
    assert done.returncode == 0, done.output
    assert not list(done.run_dir.glob("device-*.bin"))
