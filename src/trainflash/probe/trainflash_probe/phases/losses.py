"""Loss functions of torch.nn.functional that the owner calls outside any module: they belong to the forward.

A loss written as an expression of tensors has no function to bracket: `facts.between` finds its lines in a few traced steps, and the reader
gives the forward its part of the gap.
"""

from __future__ import annotations

import functools
from threading import get_ident

from ..writer import emit
from .loop import loop

NAMES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "triplet_margin_loss",
)


def install(torch) -> None:
    """Wrap the functions; torch.jit.script compiles their source, so it gets the originals."""
    functional = torch.nn.functional
    originals = {name: getattr(functional, name) for name in NAMES if hasattr(functional, name)}
    wrapped = {name: _loss(original, torch.compiler.is_compiling) for name, original in originals.items()}
    vars(functional).update(wrapped)
    script = torch.jit.script

    @functools.wraps(script)
    def with_originals(*args, **kwargs):
        vars(functional).update(originals)
        try:
            return script(*args, **kwargs)
        finally:
            vars(functional).update(wrapped)

    torch.jit.script = with_originals


def _loss(original, is_compiling):
    @functools.wraps(original)
    def loss(*args, **kwargs):
        if is_compiling() or loop.in_fwd or not loop.forwards or loop.evaluating or loop.tid != get_ident():
            return original(*args, **kwargs)
        loop.in_fwd = True
        emit(20)  # codes.FWD, as a constant for speed
        try:
            return original(*args, **kwargs)
        finally:
            loop.in_fwd = False
            emit(21)

    return loss
