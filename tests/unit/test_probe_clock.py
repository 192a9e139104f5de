"""Which update ends a step, without torch: optimizers are any objects."""

from __future__ import annotations

import pytest
from probe_events import part


class Optimizer:
    pass


@pytest.fixture
def clock():
    return part("phases.clock_of_steps").StepClock()


def test_one_optimizer_ends_each_step(clock):
    only = Optimizer()
    clock.constructed(only)
    assert clock.updated(only) and clock.forward_ends_step() and clock.update_ends_step(only)
    assert not clock.backward_completes_step()


def test_without_optimizers_backward_does(clock):
    assert clock.backward_completes_step()
    assert clock.forward_ends_step()
    clock.fetched = True
    assert not clock.forward_ends_step()


def test_an_optimizer_that_never_steps_is_given_up(clock):
    unused = Optimizer()
    clock.constructed(unused)
    completes = [clock.backward_completes_step() for _ in range(70)]
    assert not any(completes[:64]) and all(completes[64:])


def test_the_optimizer_that_steps_least_often_is_the_step(clock):
    often, rare = Optimizer(), Optimizer()
    clock.constructed(rare)
    clock.constructed(often)
    ends = []
    for _ in range(20):
        ends.append([clock.updated(often) for _ in range(5)])
        assert clock.updated(rare)
    assert not any(ends[-1])


@pytest.mark.parametrize("built_first", [0, 1])
def test_of_two_that_step_alike_the_one_that_first_steps_last_is(clock, built_first):
    both = [Optimizer(), Optimizer()]
    clock.constructed(both[built_first])
    clock.constructed(both[1 - built_first])
    ends = [(clock.updated(both[0]), clock.updated(both[1])) for _ in range(20)]
    assert ends == [(False, True)] * 20


def test_unequal_counts_are_whole_steps_from_the_first(clock):
    often, rare = Optimizer(), Optimizer()
    clock.constructed(often)
    clock.constructed(rare)
    ends = [[clock.updated(optimizer) for optimizer in (often,) * 5 + (rare,)] for _ in range(10)]
    assert ends == [[False] * 5 + [True]] * 10


def test_a_dead_optimizer_is_forgotten(clock):
    first, second = Optimizer(), Optimizer()
    clock.constructed(first)
    clock.constructed(second)
    del first
    assert clock.updated(second) and clock.forward_ends_step()
