"""Which function collects a rollout, told from where it acts and where training goes on."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from probe_events import part

acting = part("phases.acting")


class Watched:
    """Where the program acts and trains: the calls from `program` inwards, as the probe sees them."""

    def __init__(self) -> None:
        self.acts, self.trains = [], []

    def act(self) -> None:
        self.acts = self.acts or _calls()

    def train(self) -> None:
        self.trains = _calls()


def _calls() -> list:
    frame, found = sys._getframe(2), []
    while frame is not None and frame.f_code.co_name != "seen":
        found.append(acting._Call(frame.f_code, frame.f_lasti, frame.f_globals))
        frame = frame.f_back
    return found[::-1]


def seen(program, watched: Watched | None = None) -> Watched:
    watched = watched or Watched()
    program(watched)
    return watched


def of_its_own(watched):
    def collect():
        for _ in range(3):
            watched.act()

    def improve():
        watched.train()

    for _ in range(2):
        collect()
        improve()


def methods_of_one(watched):
    def collect(episodes):
        while episodes:
            watched.act()
            episodes -= 1

    def turn():
        collect(3)
        for _ in range(2):
            watched.train()

    while not watched.trains:
        turn()


def in_the_loop_that_trains(watched):
    def choose():
        watched.act()

    for step in range(8):
        choose()
        if step % 4 == 3:
            watched.train()


def in_a_loop_beside(watched):
    def choose():
        for _ in range(2):  # agents
            watched.act()

    for _ in range(2):
        for _ in range(3):
            choose()
        watched.train()


def by_one_function(watched):
    def run(trains):
        for _ in range(2):
            watched.train() if trains else watched.act()

    for _ in range(2):
        run(False)
        run(True)


def by_a_generator(watched):
    def collect():
        for _ in range(2):
            watched.act()
            yield

    for _ in collect():
        watched.train()


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (of_its_own, "collect"), (methods_of_one, "collect"), (in_the_loop_that_trains, None), (in_a_loop_beside, None),
        (by_one_function, None), (by_a_generator, None),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)  # fmt: skip
def test_only_a_function_that_acts_in_a_loop_and_returns_before_training_collects(program, name):
    watched = seen(program)
    found = acting.collector(watched.acts, watched.trains)
    assert (found and found[0].code.co_name) == name


def beside_a_score(watched):
    def collect():
        for _ in range(2):
            watched.act()

    def score():
        for _ in range(2):
            watched.test()

    def choose():
        watched.test()

    for _ in range(2):
        collect()
        watched.train()
        score()
        choose()


def test_what_acts_in_a_loop_of_its_own_from_another_place_may_test():
    calls = []
    watched = Watched()
    watched.test = lambda: calls.append(_calls())
    seen(beside_a_score, watched)
    tests = acting.Tests(*acting.collector(watched.acts, watched.trains))
    found = [tests.tester(each) for each in [*calls, watched.acts, watched.trains]]
    assert [each and each[0].code.co_name for each in found[:3]] == ["score", "score", None]  # one forward of the loop's own is no test
    assert found[-2:] == [None, None]


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        (1.5, True), (3, True), (np.float32(2), True), (torch.tensor(1.0), True), ((0.5, 2), True), ({"mean": 1.0, "n": np.int64(2)}, True),
        (None, False), (True, False), ("0.5", False), ([], False), (torch.zeros(2), False), (np.zeros(3), False), ([[1.0]], False),
        ([1.0] * 65, False), (Watched(), False),
    ],
    ids=lambda each: type(each).__name__,
)  # fmt: skip
def test_what_a_test_gives(value, numbers):
    assert acting.are_numbers(value) is numbers


class Loop:
    def __init__(self):
        self.steps, self.on_backward, self.tid = 4, [], acting.get_ident()


@pytest.mark.parametrize(
    ("does", "gives", "evaluations"),
    [("nothing", 0.5, 2), ("nothing", None, 0), ("nothing", np.add, 0), ("a backward", 0.5, 0), ("an update", 0.5, 0), ("fails", 0.5, 1)],
)
def test_the_first_call_says_whether_the_next_ones_are_evaluations(monkeypatch, does, gives, evaluations):
    loop, brackets = Loop(), []
    monkeypatch.setattr(acting, "loop", loop)
    monkeypatch.setattr(acting, "evaluation_span", lambda original: lambda: (brackets.append(1), original())[1])
    monkeypatch.setattr(acting, "_is_called_from", lambda frame, caller: True)
    calls = []

    def score():
        calls.append(1)
        if does == "a backward":
            for told in loop.on_backward:
                told((), None)
        elif does == "an update":
            loop.steps += 1
        elif does == "fails" and len(calls) == 1:
            raise ValueError("no episode")
        return gives

    call = acting._Tested(None).wrap(score)
    for _ in range(3):
        try:
            assert call() == gives
        except ValueError:
            assert len(calls) == 1
    assert (len(calls), len(brackets), loop.on_backward) == (3, evaluations, [])
