"""A cohort of mountain climbers: exposures, time to injury or to the end of the study."""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Cohort:
    features: torch.Tensor
    times: torch.Tensor
    events: torch.Tensor

    def __len__(self) -> int:
        return len(self.times)

    def part(self, rows: torch.Tensor) -> "Cohort":
        return Cohort(self.features[rows], self.times[rows], self.events[rows])

    def batches(self, size: int, generator: torch.Generator | None = None):
        order = torch.arange(len(self)) if generator is None else torch.randperm(len(self), generator=generator)
        for rows in order.split(size):
            yield self.part(rows)


def draw(people: int, features: int, seed: int) -> tuple[Cohort, Cohort]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(people, features)).astype(np.float32)
    weights = rng.normal(size=features) * (rng.random(features) < 0.3)
    risk = 0.6 * x @ weights + 0.5 * np.tanh(x[:, 0] * x[:, 1])
    times = rng.exponential(np.exp(-risk)).astype(np.float32)
    censored = rng.exponential(1.5, people).astype(np.float32)
    whole = Cohort(torch.from_numpy(x), torch.from_numpy(np.minimum(times, censored)), torch.from_numpy(times <= censored))
    order = torch.randperm(people, generator=torch.Generator().manual_seed(seed))
    border = people * 3 // 4
    return whole.part(order[:border]), whole.part(order[border:])
