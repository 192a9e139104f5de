"""Ratings of furs and coats in an old catalogue shop: who bought what, from which shelf."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Purchases:
    buyer: torch.Tensor
    item: torch.Tensor
    shelf: torch.Tensor
    rating: torch.Tensor


def purchases(count: int, buyers: int, items: int, shelves: int, seed: int) -> Purchases:
    rng = np.random.default_rng(seed)
    buyer, item = rng.integers(buyers, size=count), rng.zipf(1.3, count) % items
    shelf = item * 7919 % shelves
    taste, style = rng.normal(size=(buyers, 6)), rng.normal(size=(items, 6))
    rating = (taste[buyer] * style[item]).sum(1) + 0.3 * np.sin(shelf) + 0.1 * rng.normal(size=count)
    return Purchases(*(torch.from_numpy(column) for column in (buyer, item, shelf, rating.astype(np.float32))))


def batches(data: Purchases, size: int, seed: int) -> Iterator[Purchases]:
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(data.rating), generator=generator).split(size):
            if len(rows) == size:
                yield Purchases(data.buyer[rows], data.item[rows], data.shelf[rows], data.rating[rows])
