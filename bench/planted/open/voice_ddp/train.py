import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from voices import Voices


def network():
    return nn.Sequential(
        nn.Unflatten(1, (1, 1200)),
        nn.Conv1d(1, 24, 25, stride=5),
        nn.ReLU(),
        nn.Conv1d(24, 32, 9, stride=3),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(4),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    loader = DataLoader(Voices(rank), batch_size=16, shuffle=True)
    limit, step, start = int(os.environ.get("PLANTED_STEPS", 600)), 0, time.time()
    while step < limit:
        for wave, speaker in loader:
            loss = nn.functional.cross_entropy(model(wave), speaker)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == limit:
                break
    if rank == 0:
        print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
