import os
from contextlib import contextmanager, nullcontext

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def joined():
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


class Accumulator:
    """Spreads one update over several micro batches of a wrapped model."""

    def __init__(self, model, pieces):
        self.model = DistributedDataParallel(model)
        self.pieces = pieces

    def part(self, index):
        last = index + 1 == self.pieces
        if os.environ.get("PLANTED_FIX") == "1" and not last:
            return self.model.no_sync()
        return nullcontext()

    def run(self, batches, criterion):
        total = 0.0
        for index, (x, y) in enumerate(batches):
            with self.part(index):
                loss = criterion(self.model(x), y) / self.pieces
                loss.backward()
            total += loss.detach()
        return total
