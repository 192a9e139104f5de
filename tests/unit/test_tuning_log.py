"""The log's text: readable, lossless, redacted, and honest about a torn end."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from trainflash import schema, tuning_log
from trainflash.errors import UsageError
from trainflash.schema import LogEntry, PhaseStat, Speedup

_STAT = PhaseStat(share=0.5, mean_ms=12.25, p50_ms=12.0, p95_ms=None, p99_ms=None, per_occurrence=None)
_FULL = LogEntry(
    kind="experiment",
    at_utc="2026-11-21T12:00:00Z",
    what="dataloader_workers = 4 at data.py:31",
    why="a line\n---\nthat looks like\n...\nan end: mark # and é",
    experiment=0,
    knob="dataloader_workers",
    value="4",
    finding="input_cpu",
    diff_digest="ab" * 32,
    command="python train.py --epochs 2",
    environment={"OMP_NUM_THREADS": "1"},
    before={"Data": _STAT},
    speedup=Speedup(mean=1.4, ci_low=1.3, ci_high=1.5, starts=4),
    mean_abs_loss_delta=0.0,
    verdict="accept",
    reasons=("faster", "trains the same"),
    decision="accepted",
)
_NOTE = LogEntry(kind="note", at_utc="2026-11-21T12:01:00Z", what="looked at it", by="owner")


def test_entries_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "tuning_log.yaml"
    tuning_log.append(path, _FULL)
    tuning_log.append(path, _NOTE)
    assert tuning_log.read(path) == tuning_log.Log((_FULL, _NOTE), torn=False)


def test_a_person_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    tuning_log.append(path, _NOTE)
    assert path.read_text() == (
        "---\nschema: tuning_log.v1\nkind: note\nat_utc: '2026-11-21T12:01:00Z'\nwhat: looked at it\nby: owner\n...\n"
    )


def test_a_zero_is_written_because_it_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    tuning_log.append(path, _FULL)
    assert "mean_abs_loss_delta: 0.0\n" in path.read_text()
    assert "experiment: 0\n" in path.read_text()


def test_no_log_yet_has_no_entries(tmp_path: Path) -> None:
    assert tuning_log.read(tmp_path / "log.yaml") == tuning_log.Log((), torn=False)


def test_secrets_do_not_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    secret = "hf_" + "x1" * 17
    entry = LogEntry(
        kind="note",
        at_utc="",
        what=f"token is {secret}",
        command="python train.py --password hunter2",
        environment={"MY_API_KEY": "hunter2"},
        reasons=(f"login with {secret}",),
        diff_digest="ab" * 32,
    )
    tuning_log.append(path, entry)
    text = path.read_text()
    assert secret not in text
    assert "hunter2" not in text
    assert "ab" * 32 in text


def test_every_cut_of_the_last_entry_leaves_the_earlier_ones_and_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    tuning_log.append(path, _FULL)
    first = path.read_bytes()
    tuning_log.append(path, _NOTE)
    whole = path.read_bytes()
    for n, cut in enumerate(range(len(first) + 1, len(whole)), 1):
        path.write_bytes(whole[:cut])
        assert tuning_log.read(path) == tuning_log.Log((_FULL,), torn=True)
        tuning_log.append(path, _NOTE)
        assert tuning_log.read(path) == tuning_log.Log((_FULL, _NOTE), torn=False)
        assert Path(f"{path}.torn-{n}").read_bytes() == whole[len(first) : cut]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (b"---\nkind: [\n...\n", "is not YAML"),
        (b"---\nschema: tuning_log.v1\nkind: note\n...\n", r"entry 2\).*at_utc"),
        (b"---\nschema: tuning_log.v9\nkind: note\n...\n", "tuning_log.v9"),
        (b"---\nwhat: \xff\n...\n", "UTF-8"),
    ],
)
def test_a_whole_document_that_is_no_entry_is_named(tmp_path: Path, damage: bytes, says: str) -> None:
    path = tmp_path / "log.yaml"
    tuning_log.append(path, _NOTE)
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(UsageError, match=says):
        tuning_log.read(path)


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not written"):
        tuning_log.append(tmp_path, _NOTE)


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.yaml"
    tuning_log.append(path, _FULL)
    before = path.read_bytes()
    real_write = tuning_log.os.write
    monkeypatch.setattr(tuning_log.os, "write", lambda file, data: real_write(file, data[:10]))
    with pytest.raises(UsageError, match="No space left"):
        tuning_log.append(path, _NOTE)
    assert path.read_bytes() == before


def _experiment(n: int, decision: str = "accepted") -> LogEntry:
    return LogEntry(kind="experiment", at_utc="", what=f"experiment {n}", experiment=n, decision=decision)


def _diagnosis(on: int | None, phases: dict[str, PhaseStat]) -> LogEntry:
    return LogEntry(kind="diagnosis", at_utc="", what="input_cpu", experiment=on, before=phases)


def test_an_accepted_experiment_gets_the_phases_of_the_diagnosis_on_top_of_it() -> None:
    entries = (
        _diagnosis(None, {"Data": _STAT}), _experiment(1), _diagnosis(1, {"Fwd": _STAT}), _experiment(2, "rejected"), _experiment(3),
        LogEntry(kind="sandbox", at_utc="", what="another"), _experiment(1), _diagnosis(1, {"Opt": _STAT}),
    )  # fmt: skip
    found = tuning_log.with_after(entries)
    assert [tuple(entry.after) for entry in found if entry.kind == "experiment"] == [("Fwd",), (), (), ("Opt",)]
    assert [entry.what for entry in found] == [entry.what for entry in entries]


def test_garbage_at_the_end_is_set_aside_whatever_it_is(tmp_path: Path) -> None:
    """What a power cut leaves: zeros, half a character, a piece of another file."""
    path = tmp_path / "log.yaml"
    for n, garbage in enumerate((b"\0" * 4096, b"---\nwhat: \xc3", b"\x7fELF...\x00...", b"--- a/x\n+++ b/x\n"), 1):
        tuning_log.append(path, _NOTE)
        whole = path.read_bytes()
        path.write_bytes(whole + garbage)
        assert tuning_log.read(path) == tuning_log.Log((_NOTE,) * (2 * n - 1), torn=True)
        tuning_log.append(path, _NOTE)
        assert tuning_log.read(path) == tuning_log.Log((_NOTE,) * (2 * n), torn=False)
        assert Path(f"{path}.torn-{n}").read_bytes() == garbage


def test_what_was_left_out_of_the_file_stands_in_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    tuning_log.append(path, _NOTE)
    tuning_log.append(path, _FULL)
    for entry, written in zip(tuning_log.read(path).entries, (_NOTE, _FULL), strict=True):
        assert schema.to_plain(entry) == schema.to_plain(written)
        assert set(schema.to_plain(entry)) == {"schema", *(field.name for field in dataclasses.fields(LogEntry))}
