"""Late samples: the closer look at a step finds the line that took the time before the line at which they were taken."""

from __future__ import annotations

import sys

import pytest
import torch
from probe_events import part


def slow():
    total = 0
    for each in range(20_000):
        total += each  # the slow line
        total -= 1
    return total


def draw():
    slow()
    return torch.randn(4, 4)  # where the interpreter is let go


def quick():
    return torch.randn(4, 4)


def line_with(text: str) -> int:
    with open(__file__) as source:
        return next(number for number, line in enumerate(source, 1) if f"# {text}" in line)


@pytest.fixture
def look():
    """Looks at `function`, where samples came late at `place`; gives the line that they belong to, or None."""
    closer = part("facts.closer")
    if sys.gettrace() is not None:
        pytest.skip("somebody traces")

    def look(function, place, waited: bool):
        found = []
        for _ in range(closer.GATHER):
            closer.late(place, waited, lambda place, truth: found.append(truth))
        function()  # operators are slow when they are called first
        closer.begin()
        function()
        closer.end()
        return found[0] if found else None

    yield look
    closer.after_fork()
    closer._looks = 0


def test_plain_python_before_an_operator_gets_the_samples_of_a_handler_that_waited(look):
    code, line = look(draw, (draw.__code__, line_with("where the interpreter is let go")), waited=True)
    assert code is slow.__code__
    assert line in range(slow.__code__.co_firstlineno + 2, line_with("the slow line") + 2)


def test_samples_that_a_long_call_delayed_are_not_given_to_many_short_lines(look):
    assert look(draw, (draw.__code__, line_with("where the interpreter is let go")), waited=False) is None


def test_a_line_that_nothing_of_length_precedes_keeps_its_samples(look):
    assert look(quick, (quick.__code__, quick.__code__.co_firstlineno + 1), waited=True) is None


@pytest.mark.parametrize(("ms", "waited", "late"), [(1, True, True), (1, False, False), (6, False, True), (0.1, True, False)])
def test_a_handler_that_waits_for_the_interpreter_is_late_sooner(ms, waited, late):
    assert part("facts.closer").is_late(int(ms * 1e6), waited) is late
