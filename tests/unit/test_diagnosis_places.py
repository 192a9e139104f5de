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
