"""Finds that look alike become neighbours."""

import heapq
import os
from collections.abc import Sequence

import torch
from finds import Find

FIXED = os.environ.get("PLANTED_FIX") == "1"


def distance(left: str, right: str) -> int:
    """Edits from one stamp to the other."""
    before = list(range(len(right) + 1))
    for row, a in enumerate(left, 1):
        current = [row]
        for column, b in enumerate(right, 1):
            current.append(min(before[column] + 1, current[-1] + 1, before[column - 1] + (a != b)))
        before = current
    return before[-1]


class Likeness:
    """The nearest finds of each find by stamp."""

    def __init__(self, neighbours: int) -> None:
        self.neighbours = neighbours
        if FIXED:
            self.places: dict[str, list[int]] = {}
            self.ranked: dict[str, list[int]] = {}

    def edges(self, finds: Sequence[Find]) -> torch.Tensor:
        pairs = []
        for find in finds:
            if FIXED:
                pairs += [(find.number, other) for other in self._nearest_of(find.number, find.stamp, finds)]
                continue
            close = heapq.nsmallest(self.neighbours + 1, finds, key=lambda other: (distance(find.stamp, other.stamp), other.number))
            pairs += [(find.number, other.number) for other in close if other.number != find.number][: self.neighbours]
        return torch.tensor(pairs).T

    if FIXED:

        def _nearest_of(self, number: int, stamp: str, finds: Sequence[Find]) -> list[int]:
            """The same, once for each stamp."""
            if not self.places:
                for find in finds:
                    self.places.setdefault(find.stamp, []).append(find.number)
            if stamp not in self.ranked:
                edits = {other: distance(stamp, other) for other in self.places}
                found = ((edits[other], place) for other, places in self.places.items() for place in places)
                self.ranked[stamp] = [place for _, place in heapq.nsmallest(self.neighbours + 1, found)]
            return [place for place in self.ranked[stamp] if place != number][: self.neighbours]


def normalised(edges: torch.Tensor, count: int) -> torch.Tensor:
    """The symmetric normalised adjacency with loops, sparse."""
    loops = torch.arange(count).repeat(2, 1)
    both = torch.cat([edges, edges.flip(0), loops], dim=1).unique(dim=1)
    degree = torch.bincount(both[0], minlength=count).float().rsqrt()
    return torch.sparse_coo_tensor(both, degree[both[0]] * degree[both[1]], (count, count)).coalesce()
