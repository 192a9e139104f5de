"""The nudge changes weights by units in the last place, in as many ways as are asked for."""

from __future__ import annotations

import pytest
import torch
from probe_events import part

state = part("record.state")


def nudged(monkeypatch, way: str) -> torch.Tensor:
    layer = torch.nn.Linear(40, 20)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    monkeypatch.setenv("TRAINFLASH_NUDGE", way)
    state.nudge(layer, set())
    return layer.weight.detach() - 1.0


@pytest.mark.parametrize("way", ["1", "2", "3"])
def test_each_way_is_the_same_each_time_and_of_rounding_size(monkeypatch, way):
    moved = nudged(monkeypatch, way)
    assert torch.equal(moved, nudged(monkeypatch, way))
    assert 0 < moved.abs().max() <= torch.finfo(torch.float32).eps
    assert (moved > 0).any() and (moved < 0).any()


def test_ways_differ(monkeypatch):
    signs = [nudged(monkeypatch, way).sign() for way in ("1", "2", "3")]
    assert not any(torch.equal(a, b) for a, b in (signs[:2], signs[1:], signs[::2]))
