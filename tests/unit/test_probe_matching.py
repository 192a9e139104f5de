"""Which values of a program's are told to be the input of its model, and how surely."""

from __future__ import annotations

import numpy
import pytest
import torch
from probe_events import part

matching = part("phases.matching")
X = torch.rand(4, 3, 8, 8)
ROWS = [[0.5] * 64 for _ in range(12)]


@pytest.mark.parametrize(
    "value",
    [
        ROWS,
        (ROWS, [0, 1, 2, 3]),
        {"x": ROWS},
        [numpy.zeros((3, 8, 8)) for _ in range(4)],
        [torch.zeros(3, 8, 8) for _ in range(4)],
        (numpy.zeros((4, 8, 8, 3), dtype=numpy.uint8), 1),
        torch.zeros(4, 192),
        tuple(tuple(row) for row in ROWS),
    ],
)
def test_as_many_numbers_in_another_shape_or_type(value):
    assert matching.as_many(value, X) and not matching.same_memory(value, X) and not matching.same_kind(value, X)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        [],
        [[1.0] * 64, [1.0] * 63],
        [[1.0] * 64] * 11,
        torch.zeros(4, 192, requires_grad=True),
        [torch.zeros(192, requires_grad=True)] * 4,
        {"loss": 0.5},
        [["a"] * 64] * 12,
    ],
)
def test_anything_else_is_no_input(value):
    assert not matching.as_many(value, X)


def test_few_numbers_or_one_dimension_tell_nothing():
    assert not matching.as_many([[1.0] * 4] * 4, torch.zeros(4, 4))
    assert not matching.as_many([1] * 64, torch.zeros(64))
    assert not matching.as_many(ROWS, torch.zeros(4, 192, requires_grad=True))


def test_the_same_memory_and_the_same_kind():
    array = numpy.zeros((4, 5), dtype=numpy.float32)
    assert matching.same_memory((array, 1), torch.from_numpy(array)) and matching.same_memory([X], X[:, :1])
    assert not matching.same_memory(torch.zeros(4, 5), torch.zeros(4, 5))
    assert matching.same_kind(torch.zeros(4, 5), torch.ones(4, 5)) and matching.same_kind(array, torch.zeros(4, 5, dtype=torch.double))
    assert not matching.same_kind(torch.zeros(5, 4), torch.zeros(4, 5))


def test_no_code_of_the_owner_s_runs():
    class Rows(list):
        def __len__(self):
            raise AssertionError("the owner's code ran")

        __iter__ = __getitem__ = __len__

    assert matching.counts_in(Rows([1.0] * 64)) == set()
    assert matching.counts_in((Rows([torch.zeros(64)]), 2)) == {64}


def test_the_call_that_wrote_into_a_buffer_is_found_by_its_state():
    def call(name, before, after, depth=0):
        entry = {"code": name, "depth": depth, "namespace": {}, "state": (None, before)}
        return part("facts.calls").Returned(entry, None, 1, (None, after))

    changing = part("phases.own_updates").changing
    calls = [call("row", 1, 2, 2), call("rows", 1, 4, 1), call("fill", 1, 4), call("look", 4, 4)]
    assert changing(calls, 1).code == "rows" and changing(calls, 0) is None
    assert changing([call("row", 1, 2), call("row", 2, 3)], 1) is None
