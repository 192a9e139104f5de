"""Copies of images into torch's default order, seen in one step; and calls that are tried in both orders behind the last."""

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


def test_copies_of_channels_last(shown):
    (found,) = shown(lambda: block(torch.Tensor.contiguous))
    assert found == {"step": 7, "at": ["net.py", 3, "forward"], "calls": 3}


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


@pytest.fixture
def trials(monkeypatch):
    """Remember calls as a diagnosed step would, and what is written of them."""
    module, lines, written = part("facts.layout_trials"), part("facts.op_lines"), []
    monkeypatch.setattr(module, "capture", "diagnose")
    monkeypatch.setattr(module, "_seen", {})
    monkeypatch.setattr(module, "fact", lambda name, **figures: written.append((name, figures)))

    def tried(*calls) -> list:
        for function, args, kwargs in calls:
            made = function(*args, **kwargs)
            module.remember(function, lines._name(function), args, kwargs, lines._described(torch, args, kwargs, made), 1000)
        module.tell()
        return [row for _, figures in written for row in figures["rows"]]

    return tried


def test_calls_are_tried_in_both_orders_without_a_draw_or_a_gradient_of_the_programs(trials):
    norm = torch.nn.BatchNorm2d(4)
    state = torch.get_rng_state()
    rows = trials(
        (F.conv2d, (IMAGES, WEIGHT, None, (1, 1), "same"), {}),
        (F.max_pool2d, (IMAGES, 2), {}),
        (F.batch_norm, (IMAGES, norm.running_mean, norm.running_var, norm.weight, norm.bias, True), {"eps": 1e-5}),
        (F.interpolate, (IMAGES,), {"scale_factor": 2.0}),
    )
    assert {row[0] for row in rows} == {"conv2d", "max_pool2d", "batch_norm", "interpolate"}
    assert all(default > 0 and last > 0 for *_, default, last in rows)
    assert WEIGHT.grad is None and norm.weight.grad is None
    torch.testing.assert_close(norm.running_mean, 0.1 * IMAGES.mean((0, 2, 3)))  # moved by the program's own call alone
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "call",
    [
        (F.conv2d, (IMAGES.to(memory_format=torch.channels_last), WEIGHT), {}),
        (F.conv1d, (IMAGES[:, :, 0], WEIGHT[:, :, 0]), {}),
        (F.relu, (IMAGES,), {}),
    ],
)
def test_what_is_not_tried(trials, call):
    assert trials(call) == []
