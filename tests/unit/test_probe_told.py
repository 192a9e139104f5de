"""Who is told of a step, and when: nobody, where there is nothing to see. And whose forward it is, without asking a frame."""

from __future__ import annotations

import copy
import itertools
import sys
from threading import get_ident

import pytest
import torch
from probe_events import part
from torch import nn


@pytest.fixture
def loop(monkeypatch):
    """A loop of its own for these parts, on this thread."""
    made = part("phases.loop").Loop()
    made.tid = get_ident()
    for name in ("phases.modules", "facts.batches", "facts.pure_work", "facts.beside"):
        monkeypatch.setattr(part(name), "loop", made)
    return made


def boundaries(loop, count: int) -> None:
    for _ in range(count):
        loop.boundary()


# --- whose forward it is


@pytest.fixture
def modules(loop, monkeypatch):
    module = part("phases.modules")
    monkeypatch.setattr(module, "_torch", torch)
    monkeypatch.setattr(module, "_slots", {})
    return module


def network(modules) -> nn.Linear:
    """A root as it is after the first steps: with a slot of ours."""
    net = nn.Linear(2, 2)
    modules._place(id(net), net, True)
    assert net.__dict__["_compiled_call_impl"] is not None
    return net


def copied(net: nn.Linear) -> nn.Linear:
    """All of the network but its weights."""
    made = nn.Linear.__new__(nn.Linear)
    made.__dict__ = net.__dict__.copy()
    made._parameters = {name: nn.Parameter(torch.full_like(each, 7.0)) for name, each in net._parameters.items()}
    return made


ONES = torch.ones(1, 2)


def weights_of(net: nn.Linear) -> torch.Tensor:
    return nn.functional.linear(ONES, net.weight, net.bias)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there the frame is always asked")
def test_no_frame_is_asked_whose_forward_it_is(modules, monkeypatch):
    net = network(modules)
    monkeypatch.setattr(modules, "_called", lambda module: pytest.fail("a frame was asked"))
    for _ in range(100):  # until the interpreter has specialized the call
        assert torch.equal(net(ONES), weights_of(net))
    assert torch.equal(net(input=ONES), weights_of(net))


def test_a_copy_that_took_the_slot_along_runs_itself(modules):
    net = network(modules)
    copies = [copied(net), copy.copy(net)]
    copies[1]._parameters = {name: nn.Parameter(each + 1) for name, each in net._parameters.items()}
    for each in (net, *copies, net, *copies):
        assert torch.equal(each(ONES), weights_of(each))
        assert torch.equal(each(input=ONES), weights_of(each))


def test_a_copy_runs_itself_after_the_original_is_gone_or_has_lost_its_slot(modules):
    net, other = network(modules), network(modules)
    left, right = copied(net), copied(other)
    del net
    other._compiled_call_impl = None
    for each in (left, right, other):
        assert torch.equal(each(ONES), weights_of(each))
        assert torch.equal(each(input=ONES), weights_of(each))


# --- batches


class Batches:
    """Looked-at batches of `count` steps of so many batches each, by step."""

    def __init__(self, loop, count: int, of_step: int = 1) -> None:
        self.facts = part("facts.batches").BatchFacts()
        self.looked: list = []
        self.facts._look_at = lambda named: self.looked.append((loop.steps, self.facts._padded))
        loop.add(self.facts)
        for _ in range(count):
            for _ in range(of_step):
                loop.tell(loop.on_batch, 0, torch.zeros(4, 8), "train")
            loop.boundary()


def test_the_first_batches_are_looked_at_and_then_those_of_one_step_in_eight(loop):
    steps = [step for step, _ in Batches(loop, 80).looked]
    assert steps[:16] == list(range(16))
    assert steps[16:] == list(range(23, 80, 8))
    assert not loop.on_batch  # nobody is told of the others


def test_one_look_in_four_is_for_padding_until_all_are(loop):
    found = Batches(loop, 800).looked
    later = [padded for step, padded in found if 16 < step < 500]
    assert sum(later) == pytest.approx(len(later) / 4, abs=1)
    last = [(step, padded) for step, padded in found if step > 560]
    assert all(padded for _, padded in last) and {b[0] - a[0] for a, b in itertools.pairwise(last)} == {32}


def test_all_batches_of_a_step_are_looked_at_up_to_sixteen(loop):
    by_step: dict = {}
    for step, _ in Batches(loop, 40, of_step=3).looked:
        by_step[step] = by_step.get(step, 0) + 1
    later = {step: count for step, count in by_step.items() if step > 6}
    assert later and set(later.values()) == {3}
    many = [step for step, _ in Batches(loop, 20, of_step=40).looked]
    assert {many.count(step) for step in many} == {16}


# --- passes over the data


def test_later_passes_are_looked_at_in_the_places_of_the_first(loop, monkeypatch):
    module = part("facts.pure_work")
    monkeypatch.setattr(module.PureWork, "_may_look", lambda self: True)
    opened: list = []

    def begin(self, step):
        opened.append(step)
        self._open = True

    monkeypatch.setattr(module.PureWork, "_begin", begin)
    monkeypatch.setattr(module.PureWork, "_close", lambda self, write: setattr(self, "_open", False))
    watch = module.PureWork(torch)
    loop.add(watch)
    watch.plan_next()
    for serial in (1, 2, 3):
        loop.last_serial = serial
        for _ in range(30):
            loop.backward_begins((), None)
            loop.boundary()
    assert opened[:4] == [11, 14, 16, 21]
    assert [step - 30 for step in opened[4:8]] == [11, 14, 16, 21]
    assert len(opened) == module.MOST_WINDOWS
    assert not loop.on_boundary and not loop.on_pass  # all is seen


def test_a_window_that_cannot_be_opened_yet_is_opened_later(loop, monkeypatch):
    module = part("facts.pure_work")
    monkeypatch.setattr(module.PureWork, "_may_look", lambda self: loop.steps >= 13)
    opened: list = []
    monkeypatch.setattr(module.PureWork, "_begin", lambda self, step: opened.append(step))
    watch = module.PureWork(torch)
    loop.add(watch)
    watch.plan_next()
    boundaries(loop, 18)
    assert opened[:1] == [13]


# --- threads beside training


def test_work_is_timed_only_beside_a_busy_thread(loop, monkeypatch):
    module = part("facts.beside")
    monkeypatch.setattr(module, "_watched", {})
    beside = module.Beside()
    loop.add(beside)
    beside.on_interval(1)
    assert not (loop.on_forward or loop.on_batch or loop.on_update)
    module._watched[1] = (1, {})
    beside._rows[1] = {"name": "busy", "cpu_ns": 0, "at": [], "makes": False}
    beside.on_interval(9)
    assert loop.on_forward == [beside.on_forward] and loop.on_batch == [beside.on_batch] and loop.on_update == [beside.on_update]
