"""Calls of torch in one step: who made which node of the graph, what calls were given, whole stacks, and the recorder's nodes."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
import torch
from probe_events import part
from torch.utils._python_dispatch import TorchDispatchMode


class Mark:
    """One mark of torch's recorder."""

    def __init__(self, kind: str, handle: int, us: float, name: str = "", sequence: int = -1, scope: int = 0) -> None:
        self._told = {"kind": kind, "handle": handle, "name": name, "sequence_nr": sequence, "scope": scope}
        self.us = us

    def __getattr__(self, name):
        value = self._told[name]
        return lambda: value

    def cpu_elapsed_us(self, other: Mark) -> float:
        return other.us - self.us


def node(handle: int, begin: float, end: float, name: str, sequence: int, before: float = 0.0) -> list[Mark]:
    """What the engine does with one node: `before` µs of hooks, then the node itself until its end."""
    around = "autograd::engine::evaluate_function"
    return [
        Mark("push", handle, begin, f"{around}: {name}"),
        Mark("push", handle + 1, begin + before, name, sequence, scope=1),
        Mark("pop", handle + 1, end),
        Mark("pop", handle, end),
    ]


def test_the_engines_nodes_are_known_by_number_and_hooks_before_them_apart():
    backwards = part("facts.operators").backwards
    marks = [
        *node(1, 0, 10, "MmBackward0", 7),
        *node(3, 10, 30, "ReluBackward0", 6, before=15),
        *node(5, 30, 32, "torch::autograd::AccumulateGrad", -1),
    ]
    spent, nodes, beside = backwards([marks])
    assert spent == {7: 10_000, 6: 5_000 + 2_000}  # adding up counts for the node in front of it
    assert (nodes, beside) == (3, 15_000)


def test_a_node_belongs_to_the_call_that_made_it_or_to_the_call_behind_it():
    distributed = part("facts.op_lines")._distributed
    spent = [0, 0]
    made = [(0, 2, 0), (4, 5, 1)]  # nodes 0 and 1 of the first row; 3 was made by a function of the owner's, between the two
    assert distributed(made, {0: 5, 1: 6, 3: 7, 4: 8, 9: 1}, spent) == 1
    assert spent == [11, 15]


def test_what_a_call_was_given_is_told_with_shapes_layouts_and_plain_arguments():
    described = part("facts.op_lines")._described
    picture = torch.ones(2, 8, 4, 4)
    given, made, plain = described(
        torch,
        (picture.to(memory_format=torch.channels_last), [picture.t() if picture.dim() == 2 else picture.transpose(0, 1)], 3),
        {"dim": None, "p": "fro"},
        picture.expand(2, 8, 4, 4),
    )
    assert [each[2] for each in given] == ["channels_last", "strided"]
    assert given[0][:2] == ((2, 8, 4, 4), "float32")
    assert made[0][2] == "contiguous"
    assert plain == (("2", 3), ("p", "fro"))
    assert described(torch, (torch.ones(1).expand(5),), {}, None)[0][0][2] == "expanded"
    assert described(torch, (torch.eye(3).to_sparse(),), {}, None)[0][0][2] == "sparse_coo"


@pytest.mark.parametrize(
    ("tensor", "values"),
    [
        (torch.eye(300), "zeros"),
        (torch.ones(300, 300), ""),
        (torch.ones(300, 300, dtype=torch.bool), "ones"),
        (torch.eye(300, dtype=torch.bool), "zeros"),
        (torch.full((300, 300), 1e-40), "subnormal"),
        (torch.eye(200), ""),  # too small to look at
        (torch.eye(300).t()[:, ::2], ""),
    ],
)
def test_a_sample_tells_what_a_large_tensor_mostly_holds(tensor, values):
    before = torch.get_rng_state()
    assert part("facts.op_lines")._described(torch, (tensor.requires_grad_(tensor.is_floating_point()),), {}, None)[0][0][5] == values
    assert torch.equal(torch.get_rng_state(), before)


def test_no_value_is_sampled_where_the_program_counts_or_transforms_calls():
    described = part("facts.op_lines")._described
    seen = []

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    wide = torch.eye(300)
    with Counting():
        assert described(torch, (wide,), {}, None)[0][0][5] == ""
    assert all("count_nonzero" not in str(each) for each in seen)
    told = []
    torch.func.vmap(lambda row: told.append(described(torch, (row,), {}, None)[0][0][5]) or row)(torch.zeros(2, 300, 300))
    assert told == [""]


@pytest.fixture
def told(monkeypatch):
    """Facts that are told of stacks."""
    stacks = part("facts.stacks")
    facts: list[dict] = []
    monkeypatch.setattr(stacks, "fact", lambda kind, **values: facts.append({"k": kind, **values}))
    stacks.after_fork()
    yield facts
    stacks.after_fork()


def number(ends=None) -> int:
    return part("facts.stacks").number(sys._getframe(1), ends)


def test_a_stack_is_told_once_with_its_frames_from_the_outermost_to_the_leaf(told):
    first, second = (number() for _ in range(2))  # one line, twice: a generator's frame stands between
    assert first == second > 0
    stack = next(each for each in told if each["k"] == "stack")
    frames = {each["id"]: each["at"] for each in told if each["k"] == "frame"}
    assert frames[stack["frames"][-1]][2].endswith("<genexpr>")
    assert frames[stack["frames"][0]][1] > 0


def test_a_stack_begins_where_it_is_told_to_begin(told):
    here = test_a_stack_begins_where_it_is_told_to_begin.__name__
    assert number(lambda code: code.co_name == here) == 0  # nothing is left
    assert number(lambda code: code.co_name == "pytest_pyfunc_call") > 0
    frames = [each["at"][2] for each in told if each["k"] == "frame"]
    assert "pytest_pyfunc_call" not in frames


def deep(count: int) -> int:
    return number() if count == 0 else deep(count - 1)


def test_recursion_is_folded_and_what_led_to_it_is_kept(told):
    assert deep(600) > 0
    stack = next(each for each in told if each["k"] == "stack")
    frames = {each["id"]: each["at"][2] for each in told if each["k"] == "frame"}
    assert len(stack["frames"]) <= part("facts.stacks").DEEPEST
    assert test_recursion_is_folded_and_what_led_to_it_is_kept.__name__ in [frames[each] for each in stack["frames"]]


def test_steps_with_lines_come_ever_more_seldom():
    census = part("facts.census")
    plan = census._plan(0)
    assert plan == sorted(plan) and {step for step, lines in plan if not lines} == set(census.AT_STEPS)
    with_lines = [step for step, lines in plan if lines]
    assert all(later >= 1.5 * earlier for earlier, later in pairwise(with_lines))


def test_a_long_collection_strikes_the_line_that_allocated(monkeypatch):
    collector = part("facts.collector")
    source = collector.Collections()
    now = iter((1, 3_000_001, 10_000_000, 10_000_100))
    monkeypatch.setattr(collector, "_clock", lambda: next(now))
    monkeypatch.setattr(collector.loop, "tid", collector.get_ident())
    for _ in range(2):  # a long one, a short one
        source("start", {})
        source("stop", {"generation": 2})
    assert source.counts == [0, 0, 2]
    ((phase, _), row) = next(iter(source.struck.items()))
    assert (phase, row, len(source.struck)) == ("Other", [1, 3_000_000], 1)
