"""Operators of a step, counted beside spans that cross each other, as torch's dispatch modes do; what recording adds to them is no work."""

from __future__ import annotations

import contextlib
import itertools
import time

import pytest
import torch
from probe_events import part
from torch.utils.flop_counter import FlopCounterMode

operators = part("facts.operators")
INNER = 8  # operators that the outer one calls


def figures(kind: str) -> dict:
    """A step whose mode or span begins while its batch is made and ends after the update, inside of which is all the rest."""
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)
    around = {"mode": FlopCounterMode(display=False), "span": torch.autograd.profiler.record_function("step")}
    native = torch._C._autograd
    native._enable_profiler_legacy(part("facts.census")._config(torch))
    try:
        with torch.autograd.profiler.record_function(operators.CLOCK):
            began = time.perf_counter()
        with around.get(kind, contextlib.nullcontext()):
            x = torch.zeros(4, 8).add_(1)
            time.sleep(0.01)  # longer than the record's clock and ours may lie apart on a busy machine
            made = 1e6 * (time.perf_counter() - began)
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
    finally:
        records = native._disable_profiler_legacy()
    return operators.read(records, [(0.0, made)], -1.0)


@pytest.mark.parametrize("kind", ["mode", "span"])
def test_a_span_that_begins_with_the_batch_hides_no_operators(kind):
    plain, inside = figures("plain"), figures(kind)
    assert plain["ops"] > plain["optimizer_ops"] > 0 and plain["op_ns"] > 0
    assert inside["optimizer_ops"] == plain["optimizer_ops"] and inside["op_ns"] > 0
    assert abs(inside["ops"] - plain["ops"]) <= 1  # one begins as the batch is made


def test_convolutions_are_counted_forward_and_backward():
    native = torch._C._autograd
    model, x = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Conv2d(4, 4, 3)), torch.zeros(2, 1, 8, 8)
    native._enable_profiler_legacy(part("facts.census")._config(torch))
    try:
        with torch.autograd.profiler.record_function(operators.CLOCK):
            pass
        model(x).sum().backward()
    finally:
        records = native._disable_profiler_legacy()
    found = operators.read(records, [], -1.0)
    assert found["convs"] == 4 and 0 < found["conv_ns"] <= found["op_ns"]


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_of_whole_tables_are_told(sparse):
    native = torch._C._autograd
    table = torch.nn.Embedding(3000, 64, sparse=sparse)
    native._enable_profiler_legacy(part("facts.census")._config(torch))
    try:
        with torch.autograd.profiler.record_function(operators.CLOCK):
            pass
        table(torch.arange(8)).sum().backward()
    finally:
        records = native._disable_profiler_legacy()
    found = operators.read(records, [], -1.0)
    assert (found["table_ns"] > 0) is not sparse and found["table_ns"] <= found["op_ns"]


def test_what_a_mode_adds_to_operators_is_told():
    plain, inside = figures("plain"), figures("mode")
    assert plain["mode_ns"] == 0
    assert 0.5 * inside["op_ns"] < inside["mode_ns"] < inside["op_ns"]


class Mark:
    """One mark of torch's recorder: an operator begins or ends, at a time in µs."""

    def __init__(self, kind: str, handle: int, at_us: float, name: str = "") -> None:
        self._kind, self._handle, self.at_us, self._name = kind, handle, at_us, name

    def kind(self):
        return self._kind

    def name(self):
        return self._name

    def handle(self):
        return self._handle

    def cpu_elapsed_us(self, other):
        return other.at_us - self.at_us

    def sequence_nr(self):
        return -1


def recorded(outer_us: float, inner: int = INNER, name: str = "aten::index") -> list[Mark]:
    """An operator of that length, which calls others one after the other."""
    number = itertools.count()
    outer, each = next(number), outer_us / (inner + 1)
    marks = [Mark("push", outer, 0.0, name)]
    for place in range(inner):
        called = next(number)
        marks += [Mark("push", called, each * (place + 0.5), "aten::empty"), Mark("pop", called, each * (place + 1.4))]
    return [*marks, Mark("pop", outer, outer_us)]


@pytest.mark.parametrize(
    ("outer_us", "inner", "small_us"),
    [
        (12.0, INNER, 12.0),
        (27.0, INNER, 27.0),  # 6 µs when nothing is recorded
        (27.0, 0, 0.0),
        (100.0, INNER, INNER * operators.RECORDED_NS / 1000),
    ],
    ids=["small", "small but for recording", "large", "large, and recorded"],
)
def test_what_recording_adds_is_no_work(outer_us, inner, small_us):
    found = operators.read([recorded(outer_us, inner)], [], -1.0)
    assert (found["ops"], found["op_ns"]) == (1, pytest.approx(1000 * outer_us, rel=0.001))
    assert found["small_ns"] == pytest.approx(1000 * small_us, rel=0.001)


def test_the_gradient_of_a_single_row_is_the_loops_doing():
    found = operators.read([recorded(100.0, 0, "aten::select_backward")], [], -1.0)
    assert found["small_ns"] == found["op_ns"]


@pytest.mark.parametrize("rows", [0, 400])
def test_what_the_program_does_with_gradients_is_no_work_of_the_network(rows):
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)
    native = torch._C._autograd
    native._enable_profiler_legacy(part("facts.census")._config(torch))
    try:
        with torch.autograd.profiler.record_function(operators.CLOCK):
            began = time.perf_counter()
        loss = model(torch.ones(4, 8)).sum()
        time.sleep(0.01)
        since = 1e6 * (time.perf_counter() - began)
        time.sleep(0.01)
        loss.backward()
        for _ in range(rows):
            model.weight.grad[0].norm()
        optimizer.step()
    finally:
        records = native._disable_profiler_legacy()
    found, all_of_it = operators.read(records, [], since), operators.read(records, [], -1.0)
    assert found["ops"] - found["optimizer_ops"] < 40 and found["optimizer_ops"] == all_of_it["optimizer_ops"] > 0
    assert all_of_it["ops"] - found["ops"] == 2 * rows + 1  # a row is taken, and its norm; and the ones that the backward begins with
