"""What is known of the owner's whole run when a verdict says how much faster that is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import scenarios as s
from training_records import evaluation, stream, update

from trainflash import bench, fidelity
from trainflash.diagnosis import diagnose
from trainflash.fidelity import reuse
from trainflash.fidelity.record import Record, Stream, evaluated_every
from trainflash.workflow import owners_run


def test_a_diagnosis_that_was_stopped_leaves_the_length_to_a_check_that_saw_the_end():
    stopped, ended = (replace(s.run(), stopped=each, epochs=None) for each in (True, False))
    assert owners_run.know((diagnose(stopped), stopped), 600.0).steps is None
    assert owners_run.know((diagnose(stopped), stopped), 600.0, counted=500).steps == 500
    assert owners_run.know((diagnose(ended), ended), 600.0, counted=500).steps == ended.steps + ended.warmup_steps


def test_steps_of_a_whole_run_are_updates_of_the_rarest_optimizer(tmp_path, monkeypatch):
    updates = tuple(SimpleNamespace(optimizer=each) for each in (0, 0, 0, 1, 0, 0, 0, 1))
    kept = SimpleNamespace(record=Record((Stream(0, 1, updates),), whole=True))
    monkeypatch.setattr(reuse, "key_of", lambda *_: "key")
    monkeypatch.setattr(reuse, "load", lambda place, key, updates: {"baseline": kept})
    assert fidelity.whole_steps(None, None, tmp_path) == 2
    kept.record = replace(kept.record, whole=False)
    assert fidelity.whole_steps(None, None, tmp_path) is None


def test_evaluations_that_are_worth_a_start_of_their_length():
    known = replace(s.evaluating(0.4), stopped=True, epochs=None)  # every 50 steps
    assert owners_run.know((diagnose(known), known), 600.0).cycle == 50
    assert owners_run.know((diagnose(known), known), 600.0, evaluated=64).cycle == 50
    small = replace(s.evaluating(0.01), stopped=True, epochs=None)
    assert owners_run.know((diagnose(small), small), 600.0).cycle == 0
    assert owners_run.know(None, 600.0, evaluated=64).cycle == 64
    assert owners_run.know(None, 600.0, bench.Question(cycle=8), evaluated=64).cycle == 8  # as the starts that are there


def test_how_often_a_recorded_run_evaluates():
    updates = [update(n) for n in range(1, 61)]
    few = updates[0].samples

    def seen(*at: int, samples: int = 40 * few):
        return evaluated_every(stream(updates, evaluations=tuple(evaluation(n, samples=samples, forwards=4) for n in at)))

    assert seen(20) == 20 and seen(0, 20) == 20 and seen(20, 20, 40, 60) == 20
    assert seen() is None and seen(0) is None
    assert seen(20, 40, samples=few) is None
