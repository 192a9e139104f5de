"""Pairs of a moth's wing (scale reflectances) and the place where it was netted."""

import torch

WING, PLACE = 320, 96


def field_season(count, seed):
    gen = torch.Generator().manual_seed(seed)
    world = torch.Generator().manual_seed(77)
    lift = torch.randn(14, WING, generator=world), torch.randn(14, PLACE, generator=world)
    trait = torch.randn(count, 14, generator=gen)
    wing = torch.sin(trait @ lift[0] * 0.6) + 0.4 * torch.randn(count, WING, generator=gen)
    place = torch.tanh(trait @ lift[1] * 0.5) + 0.4 * torch.randn(count, PLACE, generator=gen)
    return wing, place


class Nights:
    """Endless shuffled batches; every epoch is one night at the lamp."""

    def __init__(self, wing, place, batch, seed=5):
        self.wing, self.place, self.batch = wing, place, batch
        self.gen = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            order = torch.randperm(len(self.wing), generator=self.gen)
            for rows in order.split(self.batch):
                if len(rows) == self.batch:
                    yield self.wing[rows], self.place[rows]
