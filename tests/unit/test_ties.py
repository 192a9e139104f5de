"""Where each half of the steps names another cause, the two tie, and it is said."""

from __future__ import annotations

from dataclasses import replace

import scenarios as s
import traces as t

from trainflash.diagnosis import diagnose
from trainflash.workflow.ties import with_ties


def run(first: tuple[float, float], second: tuple[float, float], steps: int = 200):
    """Steps whose logging and checkpoints take these parts in the first half and in the second."""
    half = steps // 2
    columns = {name: [10.0 * first[at]] * half + [10.0 * second[at]] * half for at, name in enumerate(("Log", "Ckpt"))}
    rank = t.rank([10.0] * steps, {"Fwd": 0.2, "Bwd": 0.2, **columns})
    return t.trace(rank)


def diagnosed(trace):
    from trainflash.summary import summarize

    found = diagnose(summarize(trace, run="run", project="/p"))
    return found, with_ties(found, trace, None, None)


def test_causes_that_change_places_in_the_halves_tie():
    before, found = diagnosed(run((0.3, 0.2), (0.2, 0.29)))
    assert before.findings[0].tied_with in ((), ("checkpoint",), ("logging",))
    first, second = found.findings[:2]
    assert {first.kind, second.kind} == {"logging", "checkpoint"}
    assert first.tied_with == (second.kind,) and second.tied_with == (first.kind,)


def test_one_cause_in_both_halves_is_no_tie():
    _, found = diagnosed(run((0.3, 0.1), (0.3, 0.1)))
    assert found.findings[0].kind == "logging" and found.findings[0].tied_with == ()
    assert not any("another run" in note for note in found.notes)


def test_few_steps_and_what_a_half_cannot_show_are_left_as_they_are():
    _, found = diagnosed(run((0.3, 0.2), (0.2, 0.29), steps=30))
    assert not any("another run" in note for note in found.notes)
    healthy = diagnose(s.healthy())
    assert with_ties(healthy, run((0.0, 0.0), (0.0, 0.0)), None, None) is healthy
    grown = replace(healthy, findings=(replace(healthy.findings[0], kind="growth"),))
    assert with_ties(grown, run((0.3, 0.2), (0.2, 0.29)), None, None) is grown
