"""A made-up graph of museum objects, makers, places: facts (head, relation, tail)."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Fact:
    head: int
    relation: int
    tail: int


class Graph:
    def __init__(self, entities: int, relations: int, facts: int, held_out: int, seed: int) -> None:
        self.entities, self.relations = entities, relations
        rng = np.random.default_rng(seed)
        heads = rng.integers(entities, size=facts)
        kinds = rng.integers(relations, size=facts)
        shift = rng.integers(entities, size=relations)
        tails = (heads + shift[kinds] + rng.integers(-3, 4, size=facts)) % entities
        rows = zip(heads.tolist(), kinds.tolist(), tails.tolist(), strict=True)
        self.facts = [Fact(*row) for row in rows]
        self.known: dict[tuple[int, int], set[int]] = defaultdict(set)
        for fact in self.facts:
            self.known[fact.head, fact.relation].add(fact.tail)
        self.held_out = self.facts[-held_out:]
        self.table = torch.tensor(np.stack([heads, kinds, tails], axis=1)[:-held_out])

    def batches(self, size: int, negatives: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Facts [batch, 3] and false tails [batch, negative]."""
        generator = torch.Generator().manual_seed(seed)
        while True:
            for rows in torch.randperm(len(self.table), generator=generator).split(size):
                yield self.table[rows], torch.randint(self.entities, (len(rows), negatives), generator=generator)
