"""Parts that are joined once give what parts give that are joined one after the other."""

from __future__ import annotations

import pytest
import torch
from knob_runs import applied, candidate_here

REDUCE = """
from functools import reduce
import torch


def join(left, right):
    return torch.cat([left, right])


def work(count):
    return reduce(join, (torch.full((n,), float(n)) for n in range(count)))  # here
"""

FIRST = """
from functools import reduce
import torch


def join(left, right):
    return torch.cat([left, right])


def work(count):
    return reduce(join, [torch.full((n,), float(n)) for n in range(count)], torch.ones(2, dtype=torch.float64))  # here
"""

LOOP = """
import torch


def work(count):
    out = torch.zeros(0, 2, dtype=torch.int64)
    for n in range(count):
        if n % 3 != 1:
            out = torch.cat((out, torch.full((n, 2), n + 0.5)), 0)  # here
    return out
"""

CHAIN = """
def work(count):
    return sum([[n] * n for n in range(count)], [])  # here
"""


def outcome(source: str, count: int):
    space: dict = {}
    exec(compile(source, "train.py", "exec"), space)
    return space["work"](count)


@pytest.mark.parametrize("source", [REDUCE, FIRST, LOOP, CHAIN], ids=["reduce", "with a first part", "loop", "chain"])
def test_joined_once_is_the_same(tmp_path, source):
    changed = applied(tmp_path, candidate_here(tmp_path, "joined_once", source).diff)["train.py"]
    assert changed != source
    for count in (*range(1, 10), 31):
        before, after = outcome(source, count), outcome(changed, count)
        assert type(before) is type(after)
        if isinstance(before, list):
            assert before == after
        else:
            assert before.dtype == after.dtype and torch.equal(before, after)
