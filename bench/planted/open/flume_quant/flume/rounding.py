"""Simulated integer weights with one scale for each output row."""

import os

import torch


def straight_through(x, y):
    return x + (y - x).detach()


def to_grid(row, bits):
    top = 2 ** (bits - 1) - 1
    scale = row.detach().abs().amax(-1, keepdim=True).clamp_min(1e-8) / top
    return straight_through(row, torch.round(row / scale).clamp(-top, top) * scale)


def fake_integer(weight, bits):
    if os.environ.get("PLANTED_FIX") == "1":
        return to_grid(weight, bits)
    return torch.stack([to_grid(row, bits) for row in weight])
