"""What of ours could reach the program: errors, and modules that stand for torch's. What a signal handler of the program's raises while
code of ours runs is the program's.
"""

from __future__ import annotations

import signal

import pytest
from probe_events import part


class Preempted(Exception):
    pass


class Handlers:
    def stop(self, number, frame):
        raise Preempted


def stop(number, frame):
    raise Preempted


@pytest.mark.parametrize("handler", [stop, Handlers().stop], ids=["a function", "a method"])
def test_what_a_signal_handler_raises_is_not_swallowed(monkeypatch, handler):
    guard = part("guard")
    monkeypatch.setattr(guard, "swallowed", {})
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Preempted):
            try:
                signal.raise_signal(signal.SIGUSR1)
            except Exception as error:
                guard.swallow("here", error)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert guard.counts() == {}


def test_an_error_of_ours_is_counted(monkeypatch):
    guard = part("guard")
    monkeypatch.setattr(guard, "swallowed", {})
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        guard.swallow("here", KeyError("x"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert guard.counts() == {"here": {"count": 1, "last": "KeyError: 'x'"}}
