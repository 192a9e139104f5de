"""Many small graphs become one big graph."""

from dataclasses import dataclass

import torch


@dataclass
class GraphBatch:
    species: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor
    smeared: torch.Tensor
    graph: torch.Tensor
    energy: torch.Tensor

    @property
    def size(self) -> int:
        return self.energy.shape[0]


class Joiner:
    """The collate function of the loaders; `packed` concatenates whole blocks."""

    def __init__(self, packed: bool):
        self.packed = packed

    def __call__(self, items):
        return self.join_blocks(items) if self.packed else self.join(items)

    def join(self, items):
        species, source, target, smeared, graph, energy = [], [], [], [], [], []
        offset = 0
        for number, item in enumerate(items):
            for kind in item["species"]:
                species.append(int(kind))
                graph.append(number)
            for edge in range(item["edges"].shape[1]):
                source.append(int(item["edges"][0, edge]) + offset)
                target.append(int(item["edges"][1, edge]) + offset)
                smeared.append(item["smeared"][edge])
            energy.append(item["energy"])
            offset += len(item["species"])
        return GraphBatch(
            torch.tensor(species),
            torch.tensor(source),
            torch.tensor(target),
            torch.stack(smeared),
            torch.tensor(graph),
            torch.tensor(energy),
        )

    def join_blocks(self, items):
        counts = torch.tensor([len(item["species"]) for item in items])
        offsets = torch.cumsum(counts, 0) - counts
        edges = torch.cat([item["edges"] + shift for item, shift in zip(items, offsets, strict=True)], dim=1)
        return GraphBatch(
            torch.cat([item["species"] for item in items]),
            edges[0],
            edges[1],
            torch.cat([item["smeared"] for item in items]),
            torch.repeat_interleave(torch.arange(len(items)), counts),
            torch.tensor([item["energy"] for item in items]),
        )
