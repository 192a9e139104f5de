"""Weights that lie turned round in memory are told by name; those that lie well, in any format, are not."""

from __future__ import annotations

import torch
from probe_events import part
from torch import nn

numerics = part("facts.numerics")


def turned(*modules: nn.Module) -> list[str]:
    facts = numerics.NumericsFacts(torch)
    facts._look_at(nn.ModuleList(modules))
    return sorted(facts._turned)


def test_a_weight_from_lapack_lies_column_by_column():
    table = nn.Embedding(2000, 16)
    table.weight.data = torch.linalg.qr(table.weight.data)[0]
    assert table.weight.stride() == (1, 2000)
    assert turned(nn.Linear(200, 200), table) == ["Embedding.weight (2000 × 16)"]


def test_small_and_frozen_and_channels_last_weights_are_left_alone():
    small, frozen = nn.Linear(8, 8), nn.Linear(200, 200)
    small.weight.data = small.weight.data.t()
    frozen.weight.data = frozen.weight.data.t()
    frozen.weight.requires_grad_(False)
    flat = nn.Conv2d(64, 64, 3).to(memory_format=torch.channels_last)
    deep = nn.Conv3d(32, 32, 3).to(memory_format=torch.channels_last_3d)
    assert turned(small, frozen, flat, deep) == []
