"""Sessions of phase events on disk: all or nothing, whole after a kill, bounded."""

from __future__ import annotations

import json

import pytest

from trainflash.errors import UsageError
from trainflash.trace import marked
from trainflash.workflow.phases import sessions as phase_sessions
from trainflash.workflow.phases import summary as phase_summary
from trainflash.workflow.phases.sessions import PhaseSessions

FWD = {"phase": "Fwd", "event": "start", "ts": 1.0}


@pytest.fixture
def sessions(tmp_path):
    made = PhaseSessions(tmp_path / "sessions")
    yield made
    made.close()


def test_one_refused_event_refuses_all(sessions, tmp_path):
    session = sessions.start("run").id
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps(FWD) + "\n")
    with pytest.raises(UsageError, match="event 1"):
        sessions.ingest(session, path, [FWD, {**FWD, "phase": "Fd"}])
    assert not sessions.events_path(session).exists()
    assert sessions.ingest(session, path, [FWD]) == (2, 2)
    assert [each.name for each in sessions.events_path(session).parent.glob(".incoming*")] == []


def test_a_record_cut_off_by_a_kill_is_repaired(sessions):
    session = sessions.start("run").id
    sessions.record(session, FWD)
    with sessions.events_path(session).open("ab") as file:
        file.write(b"half")
    assert marked.load(sessions.events_path(session), label="", device="cpu").events == 1
    assert sessions.record(session, {**FWD, "event": "end", "ts": 2.0}) == 2
    found = marked.load(sessions.events_path(session), label="", device="cpu")
    assert found.durations_ms["Fwd"].tolist() == [1000.0]


def test_another_server_finds_the_session(sessions, tmp_path):
    session = sessions.start("run", {"model": "small"}).id
    sessions.record(session, FWD)
    again = PhaseSessions(tmp_path / "sessions")
    assert again.get(session).metadata == {"model": "small"}
    assert again.record(session, FWD) == 2
    again.stop(session)
    again.close()
    with pytest.raises(UsageError, match="was stopped"):
        sessions.record(session, FWD)


def test_a_session_is_bounded(sessions, monkeypatch):
    monkeypatch.setattr(phase_sessions, "MOST_EVENTS", 5)
    session = sessions.start("run").id
    assert sessions.ingest(session, None, [FWD] * 4) == (4, 4)
    with pytest.raises(UsageError, match="at most 5"):
        sessions.ingest(session, None, [FWD] * 2)
    assert sessions.record(session, FWD) == 5
    with pytest.raises(UsageError, match="at most 5"):
        sessions.record(session, FWD)


@pytest.mark.parametrize("name", ["", "../x", "0" * 31, "0" * 32, "A" * 32, "/etc/passwd", "0" * 31 + "\n"])
def test_names_of_no_session_are_refused(sessions, name):
    with pytest.raises(UsageError):
        sessions.record(name, FWD)


@pytest.mark.parametrize(("label", "metadata"), [("", {}), ("x" * 500, {}), ("x", {"a": float("nan")}), ("x", {"a": "y" * 20000})])
def test_labels_and_metadata_are_bounded(sessions, label, metadata):
    with pytest.raises(UsageError):
        sessions.start(label, metadata)


def test_secrets_are_not_kept(sessions):
    made = sessions.start("run", {"env": "WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567"})
    assert "0123456789abcdef" not in (sessions.folder / made.id / "session.json").read_text()


def test_an_empty_session_says_so(sessions):
    session = sessions.start("run")
    told = phase_summary.summary(sessions, session)
    assert (told["status"], told["findings"], told["steps"], told["coverage"]) == ("inconclusive", [], 0, None)
    assert told["abstained"] == "no event was sent yet"
    sessions.record(session.id, FWD)
    assert "no complete step" in phase_summary.summary(sessions, session)["abstained"]


def test_a_million_events_take_bounded_memory(sessions, tmp_path):
    """Checked on fewer: the file is never held as objects."""
    import tracemalloc

    path = tmp_path / "trace.jsonl"
    with path.open("w") as file:
        for number in range(8_000):
            for event in ("start", "end"):
                file.write(f'{{"phase": "Opt", "event": "{event}", "ts": {number + (event == "end") / 2}, "step": {number}}}\n')
    sessions.ingest(sessions.start("first").id, None, [FWD])  # what is loaded on first use is loaded
    session = sessions.start("run").id
    tracemalloc.start()
    assert sessions.ingest(session, path, None) == (16_000, 16_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16_000 * 60  # 16 bytes an event, once read back to be added; as objects it would be several hundred


def test_disks_are_counted_once(tmp_path):
    from trainflash.telemetry import disk_bytes

    assert disk_bytes(tmp_path) is None
    for name in ("sda", "dm-0", "loop0"):
        (tmp_path / "sys" / "block" / name).mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    rows = [f"8 0 {name} 1 0 {read} 0 1 0 {written} 0 0 0 0" for name, read, written in (("sda", 10, 4), ("sda1", 10, 4), ("dm-0", 10, 4))]
    (tmp_path / "proc" / "diskstats").write_text("\n".join(rows))
    assert disk_bytes(tmp_path) == (5120, 2048)


def test_the_snapshot_measures_or_says_null():
    told = phase_summary.snapshot()
    assert told["host"]["memory_used_bytes"] is None or told["host"]["memory_used_bytes"] > 0
    assert {"disk_read_mb_s", "network_mb_s", "load"} <= set(told["host"])
    named = phase_summary.measurable()["host"]
    assert not set(named["measured"]) & set(named["not_measured"])


@pytest.mark.parametrize("found", [None, ModuleNotFoundError("mcp")])
def test_a_missing_sdk_is_one_line_with_the_mend(monkeypatch, capsys, found):
    """None: an older SDK, whose package lacks the module."""
    from trainflash.cli import main

    def find_spec(name: str) -> None:
        if found is not None:
            raise found

    monkeypatch.setattr("trainflash.cli.mcp.find_spec", find_spec)
    assert main(["mcp"]) == 2
    said = capsys.readouterr()
    assert "pip install 'mcp>=2.3,<3'" in said.err
    assert said.out == ""
