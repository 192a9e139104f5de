import os
import time
from itertools import islice

import torch
from torch import nn

from .fleet import Accumulator, joined
from .model import VisitModel
from .patients import visits

CODES, PIECES, BATCH = 12_000, 6, 32


def main():
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 120))
    with joined() as (rank, world):
        torch.manual_seed(70)
        acc = Accumulator(VisitModel(CODES), PIECES)
        opt = torch.optim.SGD(acc.model.parameters(), lr=0.2)
        source = visits(rank, BATCH, CODES, 40, seed=71)
        criterion = nn.CrossEntropyLoss()
        start = time.time()
        for n in range(1, steps + 1):
            opt.zero_grad()
            loss = acc.run(islice(source, PIECES), criterion)
            opt.step()
            if rank == 0 and n % 40 == 0:
                print(f"{n}: {loss.item():.4f}", flush=True)
        if rank == 0:
            print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}", flush=True)
