import os
import time
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from marten.proteins import chains
from marten.trunk import Trunk


@dataclass
class Job:
    length: int = 512
    batch: int = 1
    steps: int = int(os.environ.get("PLANTED_STEPS", 180))
    lr: float = 1e-3
    seed: int = 33


def go(job: Job):
    torch.manual_seed(job.seed)
    data, net = chains(400, job.length, 20, job.seed), Trunk()
    optim = torch.optim.AdamW(net.parameters(), lr=job.lr, fused=True)
    g = torch.Generator().manual_seed(job.seed)
    start = time.time()
    for i in range(job.steps):
        rows = data[torch.randint(0, len(data), (job.batch,), generator=g)]
        loss = cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optim.zero_grad()
        loss.backward()
        optim.step()
        if i % 60 == 0:
            print(f"{i} {loss.item():.4f}")
    print(f"{job.steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    go(Job())
