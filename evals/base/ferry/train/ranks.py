"""One process or several: the same calls."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn


class Ranks:
    """What a process knows of the others."""

    def __init__(self) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.size > 1 and not dist.is_initialized():
            dist.init_process_group("gloo")

    @property
    def first(self) -> bool:
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        return nn.parallel.DistributedDataParallel(model) if self.size > 1 else model

    def mean(self, value: float) -> float:
        if self.size == 1:
            return value
        held = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(held)
        return float(held) / self.size

    def wait(self) -> None:
        if self.size > 1:
            dist.barrier()

    def close(self) -> None:
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()


def plain_model(model: nn.Module) -> nn.Module:
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
