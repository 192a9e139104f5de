"""A value is read later only where each reader then gets a number, and the same one."""

from __future__ import annotations

import pytest
from knob_runs import run_for
from knob_scenes import added, program

from trainflash import knobs
from trainflash.errors import UsageError

ABOVE = """def epoch(losses):
    seen = []
    {0}
    for step, loss in enumerate(losses):
        if step % 10 == 0:
            seen.append(repr(value))
        value = loss.item()
    return seen
"""
SUM = """def epoch(losses):
    {0}
    for loss in losses:
        total += loss.item()
    return total
"""


class Loss(float):
    """As much of a tensor as the edited program needs."""

    def item(self):
        return float(self)

    detach = double = lambda self: self

    def __radd__(self, other):
        return Loss(float(self) + other)


def deferred(tmp_path, source):
    made = program(tmp_path, train_py=source)
    run, found = run_for(knobs.get("deferred_item"), made.line("train.py", ".item()"))
    return made, made.propose("deferred_item", run, findings=(found,))


def ran(source):
    namespace = {}
    exec(compile(source, "train.py", "exec"), namespace)
    return namespace["epoch"]([Loss(number) for number in range(25)])


@pytest.mark.parametrize("start", ["value = None", "value = ''", "value = compute()", "value, other = None, 3", "value: float = None"])
def test_what_is_no_number_before_the_first_step_is_not_read_as_one(tmp_path, start):
    with pytest.raises(UsageError, match="also set here"):
        deferred(tmp_path, ABOVE.format(start))


def test_what_the_function_is_given_may_be_no_number(tmp_path):
    with pytest.raises(UsageError, match="begins as what the function is given"):
        deferred(tmp_path, ABOVE.format("pass").replace("(losses)", "(losses, value=None)"))


def test_a_whole_number_is_not_shown_as_a_fraction(tmp_path):
    with pytest.raises(UsageError, match="may still be the whole number"):
        deferred(tmp_path, ABOVE.format("value = 0"))


@pytest.mark.parametrize("start", ["value = 0.0", "value: float = 0.0", "value = float('inf')", "value, other = -1.0, 2"])
def test_each_reader_sees_what_it_saw(tmp_path, start):
    made, candidate = deferred(tmp_path, ABOVE.format(start))
    before = ran(made.read("train.py"))
    made.apply(candidate)
    assert ran(made.read("train.py")) == before and len(before) == 3


@pytest.mark.parametrize("start", ["total: float = 0.0", "total: float\n    total = 0.0", "total, seen = 0.0, 0", "total = 0"])
def test_a_sum_may_be_declared_with_its_type(tmp_path, start):
    made, candidate = deferred(tmp_path, SUM.format(start))
    assert added(candidate) == ["        total += loss.detach().double()", "    return float(total)"]
    made.apply(candidate)
    assert ran(made.read("train.py")) == 300.0
