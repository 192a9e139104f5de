"""Relations as rotations of complex entities."""

import torch
from facts import Fact, Graph
from torch import nn


class Rotate(nn.Module):
    def __init__(self, entities: int, relations: int, width: int, margin: float) -> None:
        super().__init__()
        self.entity = nn.Embedding(entities, 2 * width, sparse=True)
        self.angle = nn.Embedding(relations, width, sparse=True)
        self.margin = margin
        nn.init.uniform_(self.entity.weight, -0.3, 0.3)
        nn.init.uniform_(self.angle.weight, -3.14, 3.14)

    def turned(self, heads: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        real, imaginary = self.entity(heads).chunk(2, dim=-1)
        angle = self.angle(relations)
        cosine, sine = angle.cos(), angle.sin()
        return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], dim=-1)

    def forward(self, facts: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
        heads, relations, tails = facts.unbind(1)
        to = self.turned(heads, relations)[:, None]
        right = self.margin - (to - self.entity(tails)[:, None]).norm(p=2, dim=-1)
        false = self.margin - (to - self.entity(wrong)).norm(p=2, dim=-1)
        weight = false.detach().softmax(dim=1)
        return -nn.functional.logsigmoid(right).mean() - (weight * nn.functional.logsigmoid(-false)).sum(1).mean()

    @torch.no_grad()
    def rank(self, graph: Graph, fact: Fact) -> int:
        to = self.turned(torch.tensor([fact.head]), torch.tensor([fact.relation]))
        far = (self.entity.weight - to).norm(dim=1)
        others = list(graph.known[fact.head, fact.relation] - {fact.tail})
        far[others] = float("inf")
        return int((far < far[fact.tail]).sum()) + 1
