"""Whole trainings under several seeds: those of the baseline are made once, for all candidates."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from training_records import write

from trainflash.fidelity import convergence
from trainflash.fidelity.record import read
from trainflash.schema import Command

COMMAND = Command(("python", "train.py"))


@pytest.fixture
def started(monkeypatch):
    """Each run that is started, by its side and name, in place of a run."""
    seen: list[tuple[str, str]] = []

    def start(self, name, side, command, directory, **_):
        seen.append((side, name))
        run_dir = directory / name
        write(run_dir, 4, loss=0.5 + 0.01 * int(name[-1]))
        record = read(run_dir, whole=True)
        return SimpleNamespace(
            run_dir=run_dir, record=record, seconds=1.0, log=run_dir / "output.log", outputs=None, cut=False, end=lambda: None
        )

    monkeypatch.setattr(convergence.Starter, "start", start)
    monkeypatch.setattr(convergence.Starter, "reach", lambda *_: None)
    monkeypatch.setattr(convergence.reuse, "key_of", lambda sandbox, side, command: f"{side} as it stands")
    return seen


def test_the_seeds_of_the_baseline_serve_every_candidate(started, tmp_path):
    plan = convergence.Plan(seeds=3)
    first = convergence.check(None, COMMAND, COMMAND, tmp_path / "one", plan, baseline_record=tmp_path / "kept")
    assert first.ok and [side for side, _ in started].count("baseline") == 3
    started.clear()
    second = convergence.check(None, COMMAND, COMMAND, tmp_path / "two", plan, baseline_record=tmp_path / "kept")
    assert second.ok and second.evidence == first.evidence
    assert [side for side, _ in started] == ["candidate"] * 3
