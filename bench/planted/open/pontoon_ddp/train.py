"""Kinds of boats from their tracks, two ranks.

torchrun --standalone --nproc_per_node=2 train.py
"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from scorer import Scorer
from traffic import KINDS, SENSORS, RankedBatches, Tracks


class Lookout(nn.Module):
    def __init__(self, width=80):
        super().__init__()
        self.enter = nn.Linear(SENSORS, width)
        self.recur = nn.GRU(width, width, batch_first=True)
        self.gate = nn.Linear(width, 1)
        self.out = nn.Linear(width, KINDS)

    def forward(self, x, lengths):
        h, _ = self.recur(torch.relu(self.enter(x)))
        beyond = torch.arange(x.shape[1]) >= lengths[:, None]
        weight = self.gate(h).squeeze(2).masked_fill(beyond, float("-inf")).softmax(1)
        return self.out((h * weight[:, :, None]).sum(1))


class Diary:
    """Rank 0 writes a line per step."""

    def __init__(self, rank):
        self.file = open("diary.tsv", "w") if rank == 0 else None

    def write(self, *fields):
        if self.file:
            print(*fields, sep="\t", file=self.file, flush=True)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    torch.set_num_threads(1)
    tracks = Tracks(1600, 1)
    scorer = Scorer(Tracks(280, 2), rank, world)
    batches = RankedBatches(tracks.length, 16, rank, world)
    model = Lookout()
    parallel = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(parallel.parameters(), 1e-3)
    steps, step = int(os.environ.get("PLANTED_STEPS", 4000)), 0
    diary, score = Diary(rank), None
    dist.barrier()
    began = time.perf_counter()
    while step < steps:
        for rows in batches:
            x, lengths, kind = tracks.batch(rows)
            loss = nn.functional.cross_entropy(parallel(x, lengths), kind)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(parallel.parameters(), 1.0)
            optimizer.step()
            step += 1
            diary.write(step, f"{loss.item():.5f}", f"{norm.item():.4f}", x.shape[1])
            if scorer.due(step):
                score = scorer.score(model)
            if step % 40 == 0 and rank == 0:
                print(f"{step}: loss {loss.item():.4f}, held out {score}, best {scorer.best:.4f}", flush=True)
            if step % 400 == 0 and rank == 0:
                torch.save(model.state_dict(), "lookout.pt")
            if step == steps:
                break
    dist.barrier()
    if rank == 0:
        print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
