"""Which function collects a rollout, told from where it acts and where training goes on."""

from __future__ import annotations

import sys

import pytest
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


def seen(program) -> Watched:
    watched = Watched()
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
