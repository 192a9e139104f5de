"""A machine's peaks are measured once for each number of threads, and kept beside the sandboxes."""

from __future__ import annotations

from dataclasses import replace

import traces as t

from trainflash.schema import Peaks
from trainflash.workflow import peaks

MEASURED = Peaks(2, {"cache": 6e10, "memory": 1e10}, {"float32": 1e11})


def test_what_was_measured_is_known_from_then_on(tmp_path):
    assert peaks.named(tmp_path) == ""
    rank = t.rank([10.0] * 20, {})
    assert peaks.of(tmp_path, rank) is None
    assert peaks.of(tmp_path, replace(rank, peaks=MEASURED)) == MEASURED
    assert peaks.named(tmp_path) == "2"
    peaks.of(tmp_path, replace(rank, peaks=replace(MEASURED, threads=1)))
    assert peaks.named(tmp_path) == "2,1"


def test_a_file_of_another_machine_or_a_broken_one_is_measured_again(tmp_path, monkeypatch):
    peaks.of(tmp_path, replace(t.rank([10.0] * 20, {}), peaks=MEASURED))
    monkeypatch.setattr(peaks.telemetry, "machine", lambda: {"cpu": "another"})
    assert peaks.named(tmp_path) == ""
    monkeypatch.undo()
    (tmp_path / peaks.FILE).write_text("{", encoding="utf-8")
    assert peaks.named(tmp_path) == ""


def test_a_full_disk_loses_no_more_than_the_figure(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    assert peaks.of(blocked, replace(t.rank([10.0] * 20, {}), peaks=MEASURED)) == MEASURED
