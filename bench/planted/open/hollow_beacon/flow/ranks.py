"""Small helpers around the process group."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
import torch.distributed as dist


@contextmanager
def group() -> Iterator[tuple[int, int]]:
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def meeting(model: torch.nn.parallel.DistributedDataParallel, last: bool):
    """Where gradients of the ranks meet: only in the last part of a step."""
    return nullcontext() if last else model.no_sync()


def mean_over_ranks(value: torch.Tensor) -> float:
    value = value.detach().clone()
    dist.all_reduce(value)
    return value.item() / dist.get_world_size()


def asked_steps(default: int) -> int:
    return int(os.environ.get("PLANTED_STEPS", default))
