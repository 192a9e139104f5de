"""`trainflash profile export` on a real run, as a person types it."""

from __future__ import annotations

import gzip
import json
import sys

import pytest


@pytest.fixture
def diagnosed(user):
    found = user.trainflash("diagnose", "--json", "--", sys.executable, "train.py")
    assert found.code == 0, found.err
    return user, found.document["run"]


@pytest.mark.full
def test_a_run_opens_in_a_viewer(diagnosed, tmp_path):
    user, run = diagnosed
    done = user.trainflash("profile", "export", "--run", run, "--json")
    assert done.code == 0, done.err
    document = done.document
    assert (document["schema"], document["status"], document["run"]) == ("profile_export.v1", "ok", run)
    assert document["path"].endswith(f"runs/{run}/trace.perfetto.json.gz")
    with gzip.open(document["path"], "rt") as text:
        events = json.load(text)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == document["slices"]
    assert {"step 0", "Data", "Fwd", "Bwd", "Opt"} <= {event["name"] for event in slices}
    assert any(event["ph"] == "i" and "train.py" in event["name"] for event in events)

    plain = user.trainflash("profile", "export", "--run", run, "--output", str(tmp_path / "out.json"))
    assert plain.code == 0, plain.err
    assert str(tmp_path / "out.json") in plain.out.replace("\n", "")
    assert json.loads((tmp_path / "out.json").read_text())["otherData"]["run"] == run

    unknown = user.trainflash("profile", "export", "--run", "diagnose-099", "--json")
    assert unknown.code == 2
    assert unknown.document["schema"] == "profile_export.v1"
    assert run in unknown.document["error"]["mend"]
    nowhere = user.trainflash("profile", "export", "--run", run, "--output", str(tmp_path / "absent" / "x.json"))
    assert nowhere.code == 2 and "--output" in nowhere.err
    escaping = user.trainflash("profile", "export", "--run", "../..")
    assert escaping.code == 2


@pytest.mark.full
def test_a_run_is_summarized_like_a_trace(diagnosed, tmp_path):
    user, run = diagnosed
    made = user.trainflash("profile", "summarize", "--run", run, "--json")
    assert made.code == 0, made.err
    seen = made.document
    assert (seen["schema"], seen["source_format"]) == ("profile_summary.v1", "probe")
    parts = {name: seen["time_breakdown"][name]["total_duration"] for name in ("compute", "host", "stall", "communication", "copy")}
    assert parts["host"] > parts["compute"] > 0
    assert sum(parts.values()) == pytest.approx(seen["time_breakdown"]["total_duration"], abs=1)
    assert {"Fwd", "Bwd", "Opt"} <= {op["name"] for op in seen["hot_ops"]}
    assert seen["optimization_candidates"][0]["finding"] == "input_cpu"
    again = user.trainflash("profile", "summarize", "--run", run, "--json").document
    assert again["digest"] == seen["digest"]
    twice = user.trainflash("profile", "summarize", "train.py", "--run", run)
    assert twice.code == 2 and "--run" in twice.err
