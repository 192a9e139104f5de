"""Many cells as one big graph."""

import os
from typing import NamedTuple

import torch
from crystals import Cell

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Packed(NamedTuple):
    species: torch.Tensor  # [atom]
    places: torch.Tensor  # [atom, 3]
    pairs: torch.Tensor  # [2, edge], receiver and sender
    owner: torch.Tensor  # [atom]
    energy: torch.Tensor  # [cell]


def neighbours(cells: list[Cell], sizes: torch.Tensor) -> torch.Tensor:
    if FIXED:
        starts = (sizes.cumsum(0) - sizes).tolist()
        return torch.cat([cell.bonds.nonzero() + start for cell, start in zip(cells, starts, strict=True)]).t().contiguous()
    else:
        return torch.block_diag(*[cell.bonds for cell in cells]).nonzero().t().contiguous()


def pack(cells: list[Cell]) -> Packed:
    sizes = torch.tensor([len(cell.species) for cell in cells])
    return Packed(
        torch.cat([cell.species for cell in cells]),
        torch.cat([cell.places for cell in cells]),
        neighbours(cells, sizes),
        torch.arange(len(cells)).repeat_interleave(sizes),
        torch.stack([cell.energy for cell in cells]),
    )
