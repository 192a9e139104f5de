"""A stream of visits to the shop."""

import random
from collections.abc import Iterator

import torch
from catalogue import Catalogue
from picking import distinct
from torch.utils.data import IterableDataset, get_worker_info


class Visits(IterableDataset):
    """Endless: what was looked at, what came next, and items that did not."""

    def __init__(self, catalogue: Catalogue, length: int, negatives: int, seed: int) -> None:
        self.catalogue, self.length, self.negatives, self.seed = catalogue, length, negatives, seed

    def _walk(self, rng: random.Random) -> list[int]:
        """Visitors stay in a group of items for a while, and move on to near items."""
        members = self.catalogue.members
        group, place, walk = rng.randrange(len(members)), 0, []
        for _ in range(rng.randrange(6, self.length + 2)):
            if rng.random() < 0.15:
                group = (group + 1) % len(members)
            place = (place + rng.randrange(1, 4)) % len(members[group])
            walk.append(members[group][place])
        return walk

    def _sample(self, rng: random.Random, pick) -> tuple[torch.Tensor, torch.Tensor]:
        walk = self._walk(rng)
        seen, target = walk[:-1][-self.length :], walk[-1]
        candidates = [target, *distinct(pick, self.negatives, set(walk))]
        return torch.tensor([0] * (self.length - len(seen)) + seen), torch.tensor(candidates)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        worker = get_worker_info()
        rng = random.Random(self.seed + (worker.id if worker else 0))
        pick = self.catalogue.rivals(rng)
        while True:
            yield self._sample(rng, pick)
