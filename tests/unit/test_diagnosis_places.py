"""Which of the owner's lines a finding names, where samples point to several."""

from __future__ import annotations

from dataclasses import replace

import pytest
import scenarios as s

from trainflash.diagnosis import diagnose
from trainflash.schema import LineCost, Location, Summary, SyncPoint


def sampled(phase: str, *lines: tuple[int, str, float]) -> tuple[LineCost, ...]:
    return tuple(LineCost("main", phase, Location("x.py", line, function), share) for line, function, share in lines)


def place(summary: Summary) -> tuple[int, str]:
    where = diagnose(summary).findings[0].location
    return where.line, where.function


def test_a_line_is_counted_with_its_comprehensions_generators_and_lambdas():
    lines = sampled(
        "Other", (15, "triplet", 0.154), (10, "mine.<locals>.<genexpr>", 0.141), (10, "mine.<locals>.<lambda>", 0.027), (10, "mine", 0.024)
    )
    assert place(replace(s.run(Other=0.4), lines=lines)) == (10, "mine")


def test_a_comprehension_of_a_method_is_part_of_it_whatever_is_nested_in_it():
    pieces = ("Net.loss.<locals>.<listcomp>", "Net.loss.<locals>.<listcomp>.<locals>.<genexpr>", "Net.loss")
    lines = sampled("Other", (20, "main", 0.15), *((12, piece, 0.08) for piece in pieces))
    assert place(replace(s.run(Other=0.4), lines=lines)) == (12, "Net.loss")


@pytest.mark.parametrize("named", [(), ((10, "mine", 0.02),)])
def test_a_piece_without_a_qualified_name_belongs_to_the_function_of_its_line(named):
    lines = sampled("Other", (15, "triplet", 0.15), (10, "<genexpr>", 0.11), (9, "mine" if named else "<module>", 0.1), *named)
    assert place(replace(s.run(Other=0.4), lines=lines))[0] == 10


def test_what_a_line_spends_in_sync_points_is_taken_from_its_pieces_once():
    lines = sampled("Other", (10, "mine", 0.1), (10, "mine.<locals>.<listcomp>", 0.1), (15, "triplet", 0.08))
    waits = (SyncPoint(Location("x.py", 10, "mine"), "item", 400, 0.9, 0.05, False),)
    found = {finding.kind: finding.share for finding in diagnose(replace(s.run(Other=0.3), lines=lines, sync_points=waits)).findings}
    assert found["host_code"] == pytest.approx(0.23)


def evaluating(*lines: tuple[int, str, float], training: tuple[LineCost, ...] = (), forwards: tuple[int, ...] = (18,)) -> Summary:
    """Evaluations of 0.6 of the time that begin in line 16 and ask the network in line 18."""
    plain = s.evaluating(0.6)
    places = tuple(Location("x.py", line, "evaluate") for line in forwards)
    activity = replace(plain.activities[0], location=Location("x.py", 16, "evaluate"), forwards=places)
    return replace(plain, activities=(activity,), lines=(*sampled("Eval", *lines), *training))


def test_an_evaluation_that_is_a_metric_of_its_own_names_the_metric():
    finding = diagnose(evaluating((11, "auc", 0.3), (12, "auc", 0.2), (18, "evaluate", 0.1))).findings[0]
    assert (finding.kind, finding.location.line, finding.location.function) == ("evaluation", 11, "auc")
    assert "most of it in auc at x.py:11" in finding.summary


def test_a_metric_that_is_written_into_the_evaluation_is_named_by_its_line():
    assert place(evaluating((21, "evaluate", 0.45), (18, "evaluate", 0.1))) == (21, "evaluate")


@pytest.mark.parametrize(
    "summary",
    [
        evaluating((18, "evaluate", 0.5), (11, "auc", 0.1)),
        evaluating((5, "Net.forward", 0.5), training=sampled("Fwd", (5, "Net.forward", 0.2))),
        evaluating((30, "Digits.__getitem__", 0.5), training=sampled("Data", (30, "Digits.__getitem__", 0.01))),
        evaluating((11, "auc", 0.5), forwards=()),
        evaluating((11, "auc", 0.2)),
        evaluating(),
    ],
)
def test_an_evaluation_that_mostly_asks_the_network_is_placed_where_it_begins(summary):
    assert place(summary) == (16, "evaluate")
