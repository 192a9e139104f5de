"""Which functions do what they do whenever they are called, judged by the calling function's code at the moment of the call."""

from __future__ import annotations

import contextlib
import sys

import pytest
from probe_events import part

found = []


def call():
    frame = sys._getframe(1)
    found.append(part("phases.deciding").always(frame.f_code, frame.f_lasti))


def plain(yes):
    names = {name: name.upper() for name in ("a", "b")}
    if not names:
        names = {}
    call()
    return names


def in_a_loop(yes):
    for _ in range(2):
        call()


def after_a_loop(yes):
    total = 0
    for each in range(2):
        total += each if yes else 1
    with contextlib.suppress(OSError):
        call()


def tried(yes):
    try:
        call()
    except OSError:
        return
    finally:
        yes = not yes


def checked(yes):
    if not yes:
        raise ValueError
    call()


def branch(yes):
    if yes:
        call()


def early(yes):
    if not yes:
        return
    call()


def other_branch(yes):
    if yes:
        call()
    else:
        print(yes)


def skipping(yes):
    for each in (False, yes):
        if not each:
            continue
        call()


def while_it_lasts(yes):
    while yes:
        call()
        yes = False


def generator(yes):
    call()
    yield


@pytest.mark.parametrize("function", [plain, in_a_loop, after_a_loop, tried, checked])
def test_a_function_that_does_it_each_time_decides_nothing(function):
    found.clear()
    function(True)
    assert set(found) == {True}


@pytest.mark.parametrize("function", [branch, early, other_branch, skipping, while_it_lasts, generator])
def test_a_function_that_may_return_without_it_decides(function):
    found.clear()
    list(function(True) or ())
    assert found == [False]
