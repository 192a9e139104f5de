"""Whole trainings under several seeds: those of the baseline are made once, for all candidates."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainflash.fidelity import convergence
from trainflash.fidelity.record import read
from trainflash.schema import Command

COMMAND = Command(("python", "train.py"))


def trained(run_dir: Path, loss: float) -> None:
    """The record of a program that ended after six updates."""
    run_dir.mkdir(parents=True)
    update = {
        "k": "update", "class": "SGD", "optimizer": 0, "losses": [loss.hex()], "loss_types": [], "forwards": 1, "samples": 4, "rows": None,
        "multiset": "", "order": "", "targets": None, "shapes": [], "moments": [], "modes": [], "autocast": [], "settings": [],
        "grad_norm": None, "grads": None, "grad_elements": None, "logs": 0, "epoch": 0, "batches": [],
    }  # fmt: skip
    lines = [{"k": "start", "schema": "training-record.v1", "rank": 0, "world_size": 1, "start_ns": 1}]
    lines += [{**update, "n": n} for n in range(1, 7)] + [{"k": "end", "swallowed": {}}]
    (run_dir / "training-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def started(monkeypatch):
    """Each run that is started, by its side and name, in place of a run."""
    seen: list[tuple[str, str]] = []

    def start(self, name, side, command, directory, **_):
        seen.append((side, name))
        run_dir = directory / name
        trained(run_dir, 0.5 + 0.01 * int(name[-1]))
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
