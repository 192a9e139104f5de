import os

import torch

from cells import RADIAL


def smear(length):
    """Distances as Gaussians."""
    centres = torch.as_tensor(RADIAL, dtype=torch.float32)
    return torch.exp(-8.0 * (length[:, None] - centres) ** 2)


class GraphBatch:
    """Several cells as one graph without edges between them."""

    __slots__ = ("kinds", "edges", "radial", "owner", "energy")

    def __init__(self, kinds, edges, radial, owner, energy):
        self.kinds, self.edges, self.radial, self.owner, self.energy = kinds, edges, radial, owner, energy

    @classmethod
    def join(cls, cells):
        kinds, edges, radial, owner, offset = [], [], [], [], 0
        for number, cell in enumerate(cells):
            kinds += cell["kinds"].tolist()
            owner += [number] * len(cell["kinds"])
            for (a, b), row in zip(cell["edges"].tolist(), smear(cell["length"]).tolist()):
                edges.append((a + offset, b + offset))
                radial.append(row)
            offset += len(cell["kinds"])
        energy = [cell["energy"] for cell in cells]
        return cls(torch.tensor(kinds), torch.tensor(edges).T, torch.tensor(radial), torch.tensor(owner), torch.tensor(energy))

    @classmethod
    def cat(cls, cells):
        sizes = torch.tensor([len(cell["kinds"]) for cell in cells])
        starts = torch.cumsum(sizes, 0) - sizes
        edges = torch.cat([cell["edges"] + start for cell, start in zip(cells, starts)])
        owner = torch.repeat_interleave(torch.arange(len(cells)), sizes)
        radial = smear(torch.cat([cell["length"] for cell in cells]))
        return cls(
            torch.cat([cell["kinds"] for cell in cells]),
            edges.T.contiguous(),
            radial,
            owner,
            torch.tensor([cell["energy"] for cell in cells]),
        )


def joiner():
    return GraphBatch.cat if os.environ.get("PLANTED_FIX") == "1" else GraphBatch.join
