"""Means over the steps between two reports stay means when reports become rarer: of as many steps as divide them, the first too."""

from __future__ import annotations

import pytest
from knob_scenes import activity, finding, program, summary

from trainflash.errors import UsageError

LOOP = """{0}

def steps(number):
    return range(number)


running, shown = 0.0, []
for step in steps({1}):
    running += step
    if {2}:
        shown.append(running / {3})  # here
        print(shown[-1])
        running = 0.0
{4}
"""


def rarer(tmp_path, head, test, divisor, behind=""):
    source = LOOP.format(head, 200, test, divisor, behind)
    made = program(tmp_path, train_py=source)
    run = summary(activities=(activity("Log", made.line("train.py", "# here")),))
    made.apply(made.propose("logging_cadence", run, value="50", findings=[finding("logging")]))
    return source, made.read("train.py")


def means(source):
    namespace = {}
    exec(compile(source, "train.py", "exec"), namespace)
    return namespace["shown"]


@pytest.mark.parametrize(
    ("head", "test", "divisor", "behind"),
    [
        ("EVERY = 10", "step % EVERY == EVERY - 1", "EVERY", ""),
        ("EVERY = 10", "step % EVERY == EVERY - 1", "EVERY", "print(EVERY + 1)"),
        ("EVERY = 10", "step % EVERY == (EVERY - 1)", "EVERY", "other = EVERY"),
        ("EVERY = 10", "step % EVERY == -1 + EVERY", "10", "other = EVERY"),
        ("EVERY = 10", "step % EVERY == 9", "EVERY", "other = EVERY"),
        ("EVERY = 10", "step % 10 == 9", "10", ""),
        ("EVERY = 10", "(step + 1) % EVERY == 0", "EVERY", "other = EVERY"),
        ("", "step % 10 == 10 - 1", "10", ""),
    ],
)
def test_every_mean_is_of_its_own_steps(tmp_path, head, test, divisor, behind):
    before, after = rarer(tmp_path, head, test, divisor, behind)
    assert means(before)[:2] == [4.5, 14.5]
    assert means(after) == [24.5, 74.5, 124.5, 174.5]


def test_an_end_of_the_interval_that_is_not_known_is_refused(tmp_path):
    with pytest.raises(UsageError, match="may be any step of the interval"):
        rarer(tmp_path, "EVERY, LAST = 10, 9", "step % EVERY == LAST", "EVERY")
