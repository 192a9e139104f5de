"""A made-up prosopography: people, places and goods on clay tablets, linked by relations."""

import torch


class Prosopography:
    def __init__(self, entities, relations, links, seed):
        g = torch.Generator().manual_seed(seed)
        self.entities, self.relations = entities, relations
        head = (entities * torch.rand(links, generator=g).pow(1.5)).long()
        kind = torch.randint(0, relations, (links,), generator=g)
        tail = (head * 31 + kind * 977 + torch.randint(0, 5, (links,), generator=g)) % entities
        self.links = torch.stack([head, kind, tail], dim=1)

    def epochs(self, batch, g):
        while True:
            for rows in torch.randperm(len(self.links), generator=g).split(batch):
                if len(rows) == batch:
                    yield self.links[rows]


def corrupt(links, entities, negatives, g):
    return torch.randint(0, entities, (len(links), negatives), generator=g)
