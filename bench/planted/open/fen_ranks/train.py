import os
import time
from itertools import islice

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from data import batches, bird_counts, my_share


class Season(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lstm = nn.LSTM(6, width, batch_first=True)
        self.next = nn.Linear(width, 6)

    def forward(self, counts):
        return self.next(self.lstm(counts)[0])


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    steps = int(os.environ.get("PLANTED_STEPS", 160))
    model = DDP(Season())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    start = time.time()
    for counts in islice(batches(my_share(bird_counts(), rank, world), 10), steps):
        loss = nn.functional.mse_loss(model(counts[:, :-1]), counts[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
