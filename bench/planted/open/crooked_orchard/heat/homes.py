"""Made-up homes: gauge readings and the yearly bill for heat."""

import torch


def homes(count: int, gauges: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    dice = torch.Generator().manual_seed(seed)
    readings = torch.randn(count, gauges, generator=dice)
    pull, bend = torch.randn(2, gauges, generator=dice)
    bill = (pull * torch.tanh(readings)).sum(1) + (bend * torch.cos(2 * readings)).sum(1)
    return readings, (bill + 0.3 * torch.randn(count, generator=dice)) / gauges**0.5


def forever(readings: torch.Tensor, bill: torch.Tensor, batch: int, seed: int):
    dice = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(bill), generator=dice)
        for begin in range(0, len(bill) - batch + 1, batch):
            rows = order[begin : begin + batch]
            yield readings[rows], bill[rows]
