"""Telemetry beside a real run: recorded by our own process, in the summary, the same when the run is diagnosed again."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import pytest

from trainflash import telemetry
from trainflash.schema import Summary, read_document


def run_dir(user) -> Path:
    [path] = Path(user.environment["XDG_STATE_HOME"]).glob("trainflash/*/runs/diagnose-001")
    return path


def test_a_diagnosis_holds_what_the_machine_did(user):
    first = user.trainflash("diagnose", "--steps", "60", "--warmup", "12", "--sample-hz", "0", "--json", "--", sys.executable, "train.py")
    assert first.code == 0, first.err
    directory = run_dir(user)
    samples = telemetry.read(directory / telemetry.FILE)
    assert len(samples) >= 3
    summary = read_document(Summary, directory / "summary.json")
    assert summary.warmup_steps == 12 and 24 <= summary.steps <= 48  # without those that the probe slowed to look closely
    assert summary.lines == () and summary.sampled_s is None, "sampling was off"
    host = summary.telemetry.host
    assert host.samples >= 1 and host.processes >= 1
    assert host.memory_limit_bytes and host.shm_total_bytes and host.cpus
    assert not list(Path(user.project).glob("**/telemetry*"))

    again = user.trainflash("diagnose", "--run", "diagnose-001", "--warmup", "12", "--json")
    assert again.code == 0, again.err
    assert read_document(Summary, directory / "summary.json").telemetry == summary.telemetry
    assert again.document["findings"] == first.document["findings"]

    none_left = user.trainflash("diagnose", "--run", "diagnose-001", "--warmup", "60", "--json")
    assert (none_left.code, none_left.document["status"]) == (2, "error")
    assert "leaves nothing of the run's 60" in none_left.document["error"]["message"]


def test_cpu_of_the_announced_process_is_counted(tmp_path):
    """This process itself, which computes here, with a known amount of CPU."""
    (tmp_path / "process-1.json").write_text(json.dumps({"pid": os.getpid()}))
    recorder = telemetry.Recorder(tmp_path, interval_s=0.1)
    began = time.process_time()
    recorder.start()
    work = bytes(1_000_000)
    while time.process_time() - began < 1.0:
        hashlib.sha256(work)  # leaves the interpreter to the recorder, as a program in another process does
    recorder.stop()
    samples = telemetry.read(tmp_path / telemetry.FILE)
    spent = samples[-1].host.cpu_s - samples[0].host.cpu_s
    assert 0.3 < spent <= time.process_time() - began + 0.05
    assert telemetry.derive(samples).host.cpu_used > 0


@pytest.mark.full
def test_the_recording_takes_less_than_a_hundredth_of_a_core(tmp_path):
    (tmp_path / "process-1.json").write_text(json.dumps({"pid": os.getpid()}))
    recorder = telemetry.Recorder(tmp_path)
    began, spent = time.monotonic(), time.process_time()
    recorder.start()
    time.sleep(20)
    recorder.stop()
    assert (time.process_time() - spent) / (time.monotonic() - began) < 0.01
