"""Copies of images into torch's default order, and convolutions in both orders, seen in one step."""

from __future__ import annotations

import pytest
import torch
from probe_events import part
from torch.nn import functional as F


@pytest.fixture
def shown(monkeypatch):
    """What one step of `program()` shows, with torch put back behind it."""
    setup, layouts, written = part("facts.convolution_setup"), part("facts.undone_layouts"), []
    here = ["net.py", 3, "forward"]
    monkeypatch.setattr(layouts, "asker", lambda frame: here)
    for module in (layouts, setup):
        monkeypatch.setattr(module, "fact", lambda name, **figures: written.append((name, figures)))
        monkeypatch.setattr(module.loop, "in_fwd", True)
        monkeypatch.setattr(module.loop, "evaluating", False)
    monkeypatch.setattr(setup.loop, "tid", part("facts.entry_points").get_ident())

    def seen(program) -> list[dict]:
        written.clear()
        before = torch.Tensor.contiguous, F.conv2d
        lines = setup.ConvolutionSetup(torch)
        lines.begin()
        try:
            result = program()
        finally:
            lines.end(8)
        assert (torch.Tensor.contiguous, F.conv2d) == before
        assert torch.equal(result, program())
        return [figures for name, figures in written if name == "undone_layouts"]

    return seen


IMAGES, WEIGHT = torch.rand(2, 4, 8, 8), torch.nn.Parameter(torch.rand(4, 4, 3, 3))


def block(copied, x=IMAGES):
    for _ in range(3):
        x = F.conv2d(copied(x.movedim(1, -1).contiguous().movedim(-1, 1)), WEIGHT, padding=1)
    return x


def test_copies_of_channels_last_and_the_convolutions_behind_them(shown):
    (found,) = shown(lambda: block(torch.Tensor.contiguous))
    times = found.pop("default_ns"), found.pop("last_ns")
    assert found == {"step": 7, "at": ["net.py", 3, "forward"], "tried": 3, "calls": 3} and min(times) > 0


@pytest.mark.parametrize(
    "program",
    [
        lambda: block(lambda x: x),
        lambda: F.conv2d(IMAGES.contiguous(), WEIGHT),  # nothing is copied
        lambda: F.conv2d(IMAGES.transpose(2, 3).contiguous(), WEIGHT),  # of another order
        lambda: F.conv1d(IMAGES[:, :, 0].movedim(1, -1).contiguous().movedim(-1, 1).contiguous(), WEIGHT[:, :, 0]),
        lambda: block(lambda x: x.contiguous(memory_format=torch.channels_last)),
        lambda: IMAGES.movedim(1, -1).contiguous().movedim(-1, 1).contiguous(),  # no convolution
    ],
)
def test_what_undoes_no_layout(shown, program):
    assert shown(program) == []
