"""What is known of the owner's whole run when a verdict says how much faster that is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import scenarios as s

from trainflash import fidelity
from trainflash.diagnosis import diagnose
from trainflash.fidelity import reuse
from trainflash.fidelity.record import Record, Stream
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
