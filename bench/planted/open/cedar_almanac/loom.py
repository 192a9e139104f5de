"""The network as functions over a flat dictionary of tensors."""

import math
import os

import torch
from torch.nn import functional as F


def plant(width, layers, generator):
    def matrix(rows, columns):
        return torch.randn(rows, columns, generator=generator) / math.sqrt(columns)

    leaf = {"in.w": matrix(width, 2), "in.b": torch.zeros(width), "out.w": matrix(1, width), "out.b": torch.zeros(1)}
    for i in range(layers):
        leaf[f"{i}.qkv"] = matrix(3 * width, width)
        leaf[f"{i}.mix"] = matrix(width, width) * 0.5
        leaf[f"{i}.up"], leaf[f"{i}.up.b"] = matrix(2 * width, width), torch.zeros(2 * width)
        leaf[f"{i}.down"] = matrix(width, 2 * width) * 0.5
        leaf[f"{i}.scale1"], leaf[f"{i}.scale2"] = torch.ones(width), torch.ones(width)
    return {name: value.requires_grad_() for name, value in leaf.items()}


def compass(years, size, base=2000.0):
    """Cosine and sine of a year's angles."""
    angle = torch.arange(years)[:, None] * base ** (-torch.arange(0, size, 2) / size)
    return angle.cos(), angle.sin()


def turn(x, needle):
    cos, sin = needle
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def fold(x, heads):
    """(trees, years, heads * size) to (trees * heads, years, size)"""
    trees, years, _ = x.shape
    return x.view(trees, years, heads, -1).transpose(1, 2).reshape(trees * heads, years, -1)


def unfold(x, heads):
    return x.unflatten(0, (-1, heads)).transpose(1, 2).flatten(2)


def converse(x, qkv, heads, needle):
    q, k, v = (fold(part, heads) for part in F.linear(x, qkv).chunk(3, -1))
    q, k = turn(q, needle), turn(k, needle)
    if os.environ.get("PLANTED_FIX") == "1":
        q, k, v = (part.unflatten(0, (-1, heads)) for part in (q, k, v))
        return unfold(F.scaled_dot_product_attention(q, k, v).flatten(0, 1), heads)
    else:
        return unfold(F.scaled_dot_product_attention(q, k, v), heads)


def weave(leaf, widths, hidden, heads, layers, needle):
    """Expected widths of all years, given those that are not hidden."""
    seen = torch.stack([widths.masked_fill(hidden, 0), hidden.float()], -1)
    x = F.linear(seen, leaf["in.w"], leaf["in.b"])
    for i in range(layers):
        calm = F.rms_norm(x, x.shape[-1:], leaf[f"{i}.scale1"])
        x = x + F.linear(converse(calm, leaf[f"{i}.qkv"], heads, needle), leaf[f"{i}.mix"])
        calm = F.rms_norm(x, x.shape[-1:], leaf[f"{i}.scale2"])
        x = x + F.linear(F.silu(F.linear(calm, leaf[f"{i}.up"], leaf[f"{i}.up.b"])), leaf[f"{i}.down"])
    return F.linear(x, leaf["out.w"], leaf["out.b"]).squeeze(-1)
