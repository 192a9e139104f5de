"""What starting and ending a pool takes counts for the line that made it, wherever that time passes."""

from __future__ import annotations

import time
from threading import get_ident

import pytest
from probe_events import part

starts = part("facts.starts")


class Pool:
    def __init__(self, workers):
        self.workers = workers

    def submit(self):
        time.sleep(0.001)

    def shutdown(self):
        time.sleep(0.001)


class Slotted:
    __slots__ = ()

    def begin(self):
        pass


@pytest.fixture
def source(monkeypatch):
    monkeypatch.setattr(starts.loop, "steps", 5)
    monkeypatch.setattr(starts.loop, "tid", get_ident())
    made = starts.Starts()
    for owner, name, counts in ((Pool, "__init__", True), (Pool, "submit", False), (Pool, "shutdown", False), (Slotted, "begin", True)):
        monkeypatch.setattr(owner, name, getattr(owner, name))
        made.wrap(owner, name, "process", counts=counts)
    return made


def hire():
    return Pool(2)


def send(pool):
    pool.submit()
    pool.shutdown()


def functions(source):
    return {(place[2], made[2]): values for (place, _, made), values in source.rows.items()}


def test_a_pool_counts_where_it_was_made_and_its_time_where_it_passes(source):
    for _ in range(3):
        send(hire())
    rows = functions(source)
    assert set(rows) == {("hire", "hire"), ("send", "hire")}
    assert rows[("hire", "hire")][0] == 3 and rows[("send", "hire")][0] == 0
    assert sorted(key[0][1] - send.__code__.co_firstlineno for key in source.rows if key[0][2] == "send") == [1, 2]


def test_two_pools_of_other_lines_stay_apart(source):
    send(hire())
    send(Pool(1))
    assert {made for _, made in functions(source)} == {"hire", "test_two_pools_of_other_lines_stay_apart"}


def test_an_object_that_can_hold_nothing_counts_where_it_is_started(source):
    Slotted().begin()
    assert set(functions(source)) == {(test_an_object_that_can_hold_nothing_counts_where_it_is_started.__name__,) * 2}


class Context:
    def get_start_method(self):
        return "spawn"


class Result:
    """As multiprocessing's: it lets go of its pool when it is there."""

    def __init__(self, pool):
        self._pool = pool

    def wait(self):
        self._pool = None


def test_a_first_wait_for_new_processes_counts_for_their_pool(source):
    pool = hire()
    pool._ctx = Context()
    source.first_wait(Result.wait)(Result(pool))
    assert ("test_a_first_wait_for_new_processes_counts_for_their_pool", "hire") in functions(source)
