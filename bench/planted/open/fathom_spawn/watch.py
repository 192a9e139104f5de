"""What rank 0 says while it trains, and what the ranks agree on at the end."""

import torch
import torch.distributed as dist


class Smooth:
    """A running mean as a tensor, so that reading it waits for nobody until it is shown."""

    def __init__(self, keep=0.95):
        self.keep, self.value = keep, None

    def add(self, loss):
        loss = loss.detach().clone()
        self.value = loss if self.value is None else self.keep * self.value + (1 - self.keep) * loss

    def show(self, step, rank, every=50):
        if rank == 0 and step % every == 0:
            print(f"step {step} loss {self.value.item():.4f}", flush=True)


def agree(value, op=dist.ReduceOp.SUM):
    """One number over all ranks."""
    box = torch.as_tensor(value, dtype=torch.float32).reshape(1).clone()
    dist.all_reduce(box, op=op)
    return box.item()
