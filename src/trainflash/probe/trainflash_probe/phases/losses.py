"""Loss functions of torch.nn.functional that the owner calls outside any module: they belong to the forward.

A loss written as an expression of tensors has no function to bracket: `facts.between` finds its lines in a few traced steps, and the reader
gives the forward its part of the gap.
"""

from __future__ import annotations

from threading import get_ident

from .. import inside
from ..guard import swallow
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
    """Hook into the functions."""
    enter, leave = _hooks(torch.compiler.is_dynamo_compiling)
    for name in NAMES:
        function = getattr(torch.nn.functional, name, None)
        if function is not None:
            try:
                inside.hook(function, enter, leave)
            except Exception as error:
                swallow(f"hook in {name}", error)


def _hooks(in_dynamo) -> tuple:
    def enter():
        if in_dynamo() or loop.in_fwd or not loop.forwards or loop.evaluating or loop.tid != get_ident():
            return False
        loop.in_fwd = True
        emit(20)  # codes.FWD, as a constant for speed
        return True

    def leave(entered) -> None:
        loop.in_fwd = False
        emit(21)

    return enter, leave
