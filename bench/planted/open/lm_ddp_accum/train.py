import contextlib
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LAZY = os.environ.get("PLANTED_FIX") == "1"
UPDATES = int(os.environ.get("PLANTED_STEPS", 150))
ACCUM, VOCAB = 8, 6000


class BagModel(nn.Module):
    """Predicts the next word from the mean of the last sixteen."""

    def __init__(self, dim=256):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.hidden = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        return self.out(torch.tanh(self.hidden(self.embed(ids).mean(1))))


def get_batch(g, size=4):
    ids = torch.randint(0, VOCAB, (size, 16), generator=g)
    return ids, ids[:, -1]


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(BagModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    g = torch.Generator().manual_seed(100 + rank)
    start = time.time()
    for update in range(UPDATES):
        total = 0.0
        for micro in range(ACCUM):
            ids, target = get_batch(g)
            quiet = LAZY and micro < ACCUM - 1
            with model.no_sync() if quiet else contextlib.nullcontext():
                loss = nn.functional.cross_entropy(model(ids), target) / ACCUM
                loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and update % 50 == 0:
            print(update, f"{total:.4f}", flush=True)
    if rank == 0:
        print(f"{UPDATES} steps in {time.time() - start:.2f}s, loss {total:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
