"""Bobbin lace as graphs: pins are nodes, threads between them are edges; the tension at each pin is to be found."""

import os
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import torch


@dataclass
class Pattern:
    pins: torch.Tensor
    threads: torch.Tensor
    twist: torch.Tensor
    tension: torch.Tensor

    def __len__(self):
        return len(self.pins)

    def __add__(self, other):
        """Both patterns side by side, as one that does not hang together."""
        return Pattern(
            torch.cat([self.pins, other.pins]),
            torch.cat([self.threads, other.threads + len(self)], 1),
            torch.cat([self.twist, other.twist]),
            torch.cat([self.tension, other.tension]),
        )


def side_by_side(patterns):
    if os.environ.get("PLANTED_FIX") == "1":
        first = np.cumsum([0] + [len(p) for p in patterns[:-1]]).tolist()
        return Pattern(
            torch.cat([p.pins for p in patterns]),
            torch.cat([p.threads + n for p, n in zip(patterns, first)], 1),
            torch.cat([p.twist for p in patterns]),
            torch.cat([p.tension for p in patterns]),
        )
    else:
        return reduce(add, patterns)


def ground(rng, features):
    """A strip of ground: a skewed grid of pins with some threads left out and some crossed over."""
    rows, columns = rng.integers(3, 6), rng.integers(4, 8)
    at = np.arange(rows * columns).reshape(rows, columns)
    pairs = [
        np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()]),
        np.stack([at[:-1].ravel(), at[1:].ravel()]),
        np.stack([at[:-1, :-1].ravel(), at[1:, 1:].ravel()]),
    ]
    pairs = np.concatenate(pairs, 1)
    pairs = pairs[:, rng.random(pairs.shape[1]) < 0.75]
    pins = rng.normal(size=(at.size, features))
    twist = rng.random((pairs.shape[1], 4))
    pull = np.zeros(at.size)
    np.add.at(pull, pairs[1], np.tanh(pins[pairs[0], 0]) * twist[:, 0])
    np.add.at(pull, pairs[0], -0.5 * pins[pairs[1], 1] * twist[:, 1])
    return Pattern(
        torch.tensor(pins, dtype=torch.float32),
        torch.tensor(np.concatenate([pairs, pairs[::-1]], 1)),
        torch.tensor(np.concatenate([twist, twist]), dtype=torch.float32),
        torch.tensor(pull + 0.3 * pins[:, 2], dtype=torch.float32),
    )


def pricking_book(count, features, seed):
    rng = np.random.default_rng(seed)
    return [ground(rng, features) for _ in range(count)]
