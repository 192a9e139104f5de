"""The processes that train together: joined where torchrun has started several, else this one alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as distributed
from torch.autograd.profiler import record_function

from trainflash.gate.measure.workload import Workload


class Ranks:
    """This process's place among those that train together."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def wrapped(self, workload: Workload) -> Workload:
        """The workload whose gradients all ranks share; it is left as it is where it was wrapped by its owner."""
        model = workload.model
        if self.size == 1 or workload.step is not None or hasattr(model, "no_sync") or "FSDP" in type(model).__name__:
            return workload
        parameter = next(model.parameters())
        devices = [parameter.device.index] if parameter.device.type == "cuda" else None
        return replace(workload, model=torch.nn.parallel.DistributedDataParallel(model, device_ids=devices))

    def mark_reductions(self, model: Any) -> None:
        """From here on gradients are reduced by a hook that marks the region `grad_sync`: for profiled steps, never for measured ones."""
        if self.size > 1 and isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model.register_comm_hook(None, _reduce)

    def slowest(self, values: list[float]) -> list[float]:
        """Each step's time of the rank that took longest."""
        if self.size == 1 or not values:
            return values
        return [max(each) for each in zip(*self._gathered(values), strict=True)]

    def most(self, value: int | None) -> int | None:
        """The largest of all ranks; None where one is not known."""
        if self.size == 1:
            return value
        found = self._gathered(value)
        return None if any(each is None for each in found) else max(found)

    def _gathered(self, value: Any) -> list[Any]:
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, value)
        return found


@contextlib.contextmanager
def joined() -> Iterator[Ranks]:
    """The group that torchrun names, made and left here unless it stands already."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Ranks(0, 1)
        return
    ours = not distributed.is_initialized()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if ours:
        distributed.init_process_group("nccl" if cuda else "gloo")
    try:
        yield Ranks(distributed.get_rank(), distributed.get_world_size())
        if ours:
            distributed.barrier()  # gloo's threads abort where one rank leaves while another still talks to it
    finally:
        if ours:
            distributed.destroy_process_group()


def _reduce(state, bucket):  # without annotations: torch compares them with its classes, and here they would be text
    """The mean of one bucket's gradients over all ranks, as torch's own reduction makes it."""
    with record_function("grad_sync"):
        gradients = bucket.buffer().div_(distributed.get_world_size())
        work = distributed.all_reduce(gradients, async_op=True)
        return work.get_future().then(lambda done: done.value()[0])
