import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Engine:
    def __init__(self, net: nn.Module, lr: float, accumulate: int) -> None:
        self.net = DistributedDataParallel(net)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=lr, fused=True)
        self.accumulate = accumulate

    def backward(self, card: Tensor, hour: Tensor, line: Tensor) -> Tensor:
        loss = F.cross_entropy(self.net(card, hour), line) / self.accumulate
        loss.backward()
        return loss.detach()

    def update(self, parts: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros(())
        for number, part in enumerate(parts, 1):
            if FIXED and number < self.accumulate:
                with self.net.no_sync():
                    total += self.backward(*part)
            else:
                total += self.backward(*part)
        self.optimizer.step()
        return total
