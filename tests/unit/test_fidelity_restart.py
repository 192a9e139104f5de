"""Who is started again from a checkpoint, and who is trained under another seed: the processes that train decide, not their workers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from training_records import checkpoint, record, stream, update

from trainflash.fidelity import restarting, trial
from trainflash.fidelity.judgement import compare
from trainflash.fidelity.record import Record
from trainflash.fidelity.reuse import Run
from trainflash.schema import Command

SAVED = {"target": "last.pt"}


def saving(*more, **changes) -> Record:
    checkpoints = tuple(checkpoint(n, **SAVED) for n in (10, 20))
    return record(stream(checkpoints=checkpoints, **changes), *more)


def worker() -> object:
    """A process that only reads samples, as a loader's workers do."""
    return replace(stream(), updates=(), weights=(), evaluations=(), checkpoints=(), loads=({"n": 0, "target": "17.pt"},))


def restarted(monkeypatch, tmp_path: Path, loads: tuple[dict, ...], *more):
    """The verdict after a restart in which both sides load `loads` and go on with the same training; the candidate at another rate."""
    goes_on = record(stream(loads=loads, checkpoints=()), *more)
    slower = [update(n, settings=({**update(n).settings[0], "lr": 0.01},)) for n in range(1, 31)]
    other = record(stream(slower, loads=loads, checkpoints=()), *more)
    answers = iter([[Run(saving(), 1.0, tmp_path, tmp_path)] * 2, [Run(each, 1.0, tmp_path, tmp_path) for each in (goes_on, other)]])
    monkeypatch.setattr(restarting, "_both", lambda *_: next(answers))
    again = Command(("python", "train.py", "last.pt"))
    command = Command(("python", "train.py"))
    commands = restarting.Commands(command, command, again, again)
    shelf = restarting.Shelf(tmp_path, None, None)
    return restarting.judge(None, commands, tmp_path, shelf, saving(*more), compare(saving(*more), saving(*more)), 1e-3)


@pytest.mark.parametrize("more", [(), (worker(),), (worker(), worker())])
def test_both_are_started_again_whatever_the_loaders_workers_read(monkeypatch, tmp_path, more):
    found = restarted(monkeypatch, tmp_path, ({"n": 0, **SAVED},), *more)
    assert found.changed == ("checkpoint",) and "learning rate" in found.reasons[0], found.notes


def test_a_worker_that_reads_a_file_of_that_name_has_loaded_no_checkpoint(monkeypatch, tmp_path):
    reader = replace(worker(), loads=({"n": 0, **SAVED},))
    found = restarted(monkeypatch, tmp_path, (), reader)
    assert found.verdict == "same" and "does not load one by itself" in found.notes[-1]


def test_a_program_without_a_seed_is_trained_under_another_one_though_workers_say_nothing_of_theirs(monkeypatch):
    ours = record(stream(seeded=False), worker())
    tried = []
    monkeypatch.setattr(trial._Trial, "_beside", lambda self, old: SimpleNamespace(baseline=old, candidate=old, trouble=None, first_s=None))
    monkeypatch.setattr(trial._Trial, "_compare", lambda self, sides: compare(ours, ours))
    monkeypatch.setattr(trial._Trial, "_under_another_seed", lambda self, found, sides, kept: tried.append(found) or found)
    monkeypatch.setattr(trial._Trial, "_resumed", lambda self, found, sides: (found, 0))
    monkeypatch.setattr(trial.reuse, "load", lambda *_, **__: {"baseline": Run(ours, 1.0, Path(), None)})
    starter = trial.Starter(None, None, trial.Bounds(), None, False, (), None)
    command = Command(("python", "train.py"))
    made = trial._Trial(starter, command, command, Path(), Path(), None, None, 1e-3, frozenset(), None, None, False)
    assert made.verdict().verdict == "same" and len(tried) == 1


def test_a_trial_has_seen_enough_though_workers_see_nothing():
    steps = stream()
    enough = trial._Trial._enough
    attempt = SimpleNamespace(record=Record((steps, worker())), seconds=100.0, due=lambda: True)
    bounds = trial.Bounds(whole_s=60.0, most_s=240.0)
    assert enough(SimpleNamespace(starter=SimpleNamespace(bounds=bounds, updates=None), least=0), attempt)
