"""Targets are the same ones in float64 and in float32: the number format is a change of its own."""

from __future__ import annotations

import torch
from probe_events import part


def seen(target):
    tensors = part("record.tensors")
    return tensors.rows([tensors.as_single(target)])


def test_the_format_of_targets_is_not_their_content():
    target = torch.rand(6, 2, dtype=torch.float64)
    assert seen(target) == seen(target.float())
    assert seen(target) != seen(target.flip(0))
    assert seen(target) != seen(target * (1 + 1e-6))


def test_whole_numbers_keep_all_their_digits():
    large = torch.tensor([2**40, 2**40 + 1])
    assert seen(large) != seen(large.flip(0))
    assert len(set(seen(large))) == 2
