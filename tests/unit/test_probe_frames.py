"""Frames of all threads are asked for without a garbage collection inside; and the line at which one stands."""

from __future__ import annotations

import ctypes
import functools
import gc
import linecache
import signal
import sys
import threading
import types
import weakref

import pytest
from probe_events import part

frames, own = part("frames"), part("own")


@pytest.fixture
def eager():
    """A collection at each new object, and a list of those that began while frames were asked for."""
    inside, before = [], gc.get_threshold()

    def note(phase, info):
        frame = sys._getframe(1)
        if "_current_frames" in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
            inside.append(phase)

    gc.callbacks.append(note)
    gc.set_threshold(1)
    yield inside
    gc.set_threshold(*before)
    gc.callbacks.remove(note)


def test_no_collection_begins_inside(eager):
    done = threading.Event()
    others = [threading.Thread(target=done.wait) for _ in range(20)]
    for each in others:
        each.start()
    for _ in range(200):
        found = frames.of_threads()
    done.set()
    assert {each.ident for each in others} < set(found) and found[threading.get_ident()].f_code.co_name == "of_threads"
    assert eager == [] and gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        frames.of_threads()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_looks_at_frames_keeps_none_of_them():
    """A frame of its own in a local variable would hold the program's tensors until the next collection."""
    tracing, beside, feeding = part("tracing"), part("facts.beside"), part("phases.feeding")
    beside._watched[-1] = (-1, {})

    class Held:
        pass

    def program(look):
        held = Held()
        look()
        return weakref.ref(held)

    gc.disable()
    try:
        for look in (tracing.others_work, beside.look, lambda: feeding.frame_of_maker(-1)):
            assert program(look)() is None
    finally:
        gc.enable()
        del beside._watched[-1]


def test_what_c_did_before_it_called_a_function_is_not_that_function():
    """A signal that arrived meanwhile is handled where the function is entered."""
    own, seen = part("own"), []

    def look(_number, frame):
        seen.append((own.own_frame(frame).f_code.co_name, own.was_running(own.own_frame(frame)).f_code.co_name))

    def called_back(_):
        return sum([1])

    def entered(argument):
        cell = argument
        return (lambda: cell)()

    before = signal.signal(signal.SIGUSR1, look)
    arrives = ctypes.CDLL(None)["raise"]
    try:
        next(map(called_back, iter(functools.partial(arrives, signal.SIGUSR1), None)))
        next(map(entered, iter(functools.partial(arrives, signal.SIGUSR1), None)))
    finally:
        signal.signal(signal.SIGUSR1, before)
    here = "test_what_c_did_before_it_called_a_function_is_not_that_function"
    assert seen == [("called_back", here), ("entered", here)]


def test_a_function_that_runs_is_told_by_itself():
    own, seen = part("own"), []

    def runs():
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda _number, frame: seen.append(own.was_running(own.own_frame(frame)).f_code.co_name))
    try:
        runs()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == ["runs"]


def test_a_frame_between_lines_stands_at_the_line_in_front():
    """At the end of a loop's turn Python 3.11 and newer run code that belongs to no line."""

    def work():
        for each in range(3):
            if each > 5:
                continue
            seen.append(each)

    seen: list = []
    code = work.__code__
    lines = [line for _, _, line in code.co_lines() if line]
    ends = [begin for begin, _, line in code.co_lines() if line is None]
    frame = types.SimpleNamespace(f_code=code, f_lineno=None, f_lasti=max(begin for begin, _, _ in code.co_lines()))
    assert own.line_of(frame) in lines[1:]
    for at in ends:
        before = [line for begin, _, line in code.co_lines() if begin < at and line]
        assert own.line_of(types.SimpleNamespace(f_code=code, f_lineno=None, f_lasti=at)) == (before or [code.co_firstlineno])[-1]
    assert own.line_of(types.SimpleNamespace(f_code=code, f_lineno=7, f_lasti=0)) == 7
