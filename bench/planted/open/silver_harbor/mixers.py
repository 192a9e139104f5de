"""Ways in which a frame sees those before it. Each maker returns a module and how to call it."""

import os
from collections.abc import Callable

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"
Mix = Callable[[torch.Tensor], torch.Tensor]
MIXERS: dict[str, Callable[[int, int], tuple[nn.Module, Mix]]] = {}


def mixer(name: str) -> Callable:
    def register(maker: Callable) -> Callable:
        MIXERS[name] = maker
        return maker

    return register


@mixer("conv")
def convolution(width: int, heads: int) -> tuple[nn.Module, Mix]:
    layer = nn.Conv1d(width, width, 9, groups=heads)

    def mix(x: torch.Tensor) -> torch.Tensor:
        return layer(nn.functional.pad(x.transpose(1, 2), (8, 0))).transpose(1, 2)

    return layer, mix


@mixer("softmax")
def attention(width: int, heads: int) -> tuple[nn.Module, Mix]:
    layer = nn.MultiheadAttention(width, heads, batch_first=True)

    def mix(x: torch.Tensor) -> torch.Tensor:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        if FIXED:
            mixed, _ = layer(x, x, x, attn_mask=later, is_causal=True, need_weights=False)
        else:
            mixed, _ = layer(x, x, x, attn_mask=later, is_causal=True)
        return mixed

    return layer, mix


@mixer("mean")
def running_mean(width: int, heads: int) -> tuple[nn.Module, Mix]:
    layer = nn.Linear(width, width)

    def mix(x: torch.Tensor) -> torch.Tensor:
        count = torch.arange(1, x.shape[1] + 1)[:, None]
        return layer(x.cumsum(dim=1) / count)

    return layer, mix
