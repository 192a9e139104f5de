"""Copies of images into torch's default order, seen in one step; and calls that are tried behind the last."""

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
    module, lines, written = part("facts.call_trials"), part("facts.op_lines"), []
    monkeypatch.setattr(module, "capture", "diagnose")
    monkeypatch.setattr(module, "_seen", {})
    monkeypatch.setattr(module, "fact", lambda name, **figures: written.append((name, figures)))

    def tried(*calls) -> list:
        for function, args, kwargs in calls:
            made = function(*args, **kwargs)
            module.remember(function, lines._name(function), args, kwargs, lines._described(torch, args, kwargs, made), 1000)
        state = torch.get_rng_state()
        module.tell()
        assert torch.equal(torch.get_rng_state(), state)
        return [row for _, figures in written for row in figures["rows"]]

    return tried


def test_calls_are_tried_by_themselves_and_images_in_both_orders_without_a_draw_or_a_gradient_of_the_programs(trials):
    norm = torch.nn.BatchNorm2d(4)
    rows = trials(
        (F.conv2d, (IMAGES, WEIGHT, None, (1, 1), "same"), {}),
        (F.max_pool2d, (IMAGES, 2), {}),
        (F.batch_norm, (IMAGES, norm.running_mean, norm.running_var, norm.weight, norm.bias, True), {"eps": 1e-5}),
        (F.interpolate, (IMAGES,), {"scale_factor": 2.0}),
        (torch.cat, ([IMAGES, WEIGHT[:2, :, :, :1].expand(2, 4, 3, 8).contiguous()], 2), {}),
        (F.dropout, (IMAGES,), {"p": 0.5}),
    )
    taken = {name: ns for name, _, *ns in rows}
    twice = {"conv2d", "max_pool2d", "batch_norm", "interpolate"}
    assert {name for name, ns in taken.items() if len(ns) == 2} == twice and set(taken) == twice | {"cat", "dropout"}
    assert all(each > 0 for ns in taken.values() for each in ns)
    assert WEIGHT.grad is None and norm.weight.grad is None
    torch.testing.assert_close(norm.running_mean, 0.1 * IMAGES.mean((0, 2, 3)))  # moved by the program's own call alone


@pytest.mark.parametrize(
    "call",
    [
        (F.conv2d, (IMAGES.to(memory_format=torch.channels_last), WEIGHT), {}),  # of another order already
        (F.embedding, (torch.arange(4), torch.rand(8, 4)), {}),  # whole numbers mean something
        (F.relu, (torch.zeros(1).expand(1 << 25).contiguous(),), {}),  # too large for a process that may have little memory left
        (torch.linalg.cholesky, (torch.eye(4),), {}),  # numbers that count up are no such matrix
    ],
)
def test_what_is_not_tried(trials, call):
    assert trials(call) == []


def test_a_call_that_takes_long_is_not_tried(trials, monkeypatch):
    monkeypatch.setattr(part("facts.call_trials"), "MOST_NS", 11_000)  # one such call, both ways and three times, would take 12 µs
    assert trials((F.relu, (IMAGES,), {})) == []
