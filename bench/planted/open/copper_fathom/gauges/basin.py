"""The river as a weighted graph: water flows along edges, gauges sit on nodes."""

import os
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

FIXED = os.environ.get("PLANTED_FIX") == "1"
lazily = cached_property if FIXED else property


@dataclass
class Basin:
    source: Tensor
    target: Tensor
    metres: Tensor
    gauges: int
    order: int

    @lazily
    def downstream(self) -> Tensor:
        near = torch.exp(-self.metres / self.metres.mean())
        flow = torch.zeros(self.gauges, self.gauges).index_put_((self.source, self.target), near, accumulate=True)
        return flow / flow.sum(1, keepdim=True).clamp_min(1e-6)

    @lazily
    def supports(self) -> Tensor:
        """Powers of the walk along and against the stream, [2 * order, gauge, gauge]."""
        with torch.no_grad():
            walks = []
            for way in (self.downstream, self.downstream.T):
                power = way
                for _ in range(self.order):
                    walks.append(power / power.sum(1, keepdim=True).clamp_min(1e-6))
                    power = power @ way
            return torch.stack(walks)


def draw(gauges: int, order: int, seed: int) -> Basin:
    g = torch.Generator().manual_seed(seed)
    source = torch.arange(1, gauges)
    target = (torch.rand(gauges - 1, generator=g) * source).long()
    extra = torch.randint(gauges, (2, 3 * gauges), generator=g)
    metres = 200 + 4000 * torch.rand(4 * gauges - 1, generator=g)
    return Basin(torch.cat([source, extra[0]]), torch.cat([target, extra[1]]), metres, gauges, order)
