"""Weights of an attention, by what the graph says of their use."""

from __future__ import annotations

import pytest
import torch
from probe_events import part
from torch.nn import functional as F

SCORES = torch.randn(2, 5, 5)
VALUES = torch.randn(2, 5, 4)
OUTPUT = torch.randn(4, 4, requires_grad=True)


def used(then, exponentials=False):
    """Whether the weights are used elsewhere when the loss is `then(weights, values)`."""
    weights, scores = part("facts.weights"), SCORES.clone().requires_grad_()
    made = scores.exp() if exponentials else scores.softmax(-1)
    loss = then(made, VALUES.clone().requires_grad_())
    return weights.used_elsewhere(made.grad_fn, weights.consumers([loss.grad_fn]), exponentials)


@pytest.mark.parametrize(
    ("then", "exponentials"),
    [
        (lambda w, v: (w @ v @ OUTPUT).sum(), False),
        (lambda w, v: (F.dropout(w, 0.1) @ v).transpose(1, 2).reshape(2, 20).pow(2).mean(), False),
        (lambda w, v: torch.einsum("bqk,bkd->bqd", w.masked_fill(w < 0.1, 0), v).sum(), False),
        (lambda w, v: ((w / w.sum(-1, keepdim=True)) @ v @ OUTPUT).sum(), True),
        (lambda w, v: (((w * 2) @ v) / (w * 2).sum(-1, keepdim=True) @ OUTPUT).sum(), True),
    ],
)
def test_weights_that_only_mix_the_values(then, exponentials):
    assert not used(then, exponentials)


@pytest.mark.parametrize(
    "then",
    [
        lambda w, v: (w @ v @ OUTPUT).sum() + F.nll_loss((w + 1e-9).log().transpose(1, 2), torch.zeros(2, 5, dtype=torch.long)),
        lambda w, v: (w @ v).sum() - (w * w.log()).sum(),
        lambda w, v: (w @ v).sum() + (w.mean(0) @ torch.ones(5, 3)).sum(),
        lambda w, v: w.sum(),
    ],
)
def test_weights_that_are_a_result_too(then):
    assert used(then)
