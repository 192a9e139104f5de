"""Counting operators of a step beside spans that cross each other, as those of torch's dispatch modes do."""

from __future__ import annotations

import contextlib
import time

import pytest
import torch
from probe_events import part
from torch.utils.flop_counter import FlopCounterMode

operators = part("facts.operators")


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


def test_what_a_mode_adds_to_operators_is_told():
    plain, inside = figures("plain"), figures("mode")
    assert plain["mode_ns"] == 0
    assert 0.5 * inside["op_ns"] < inside["mode_ns"] < inside["op_ns"]
