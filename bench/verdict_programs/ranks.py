"""Two ranks average their gradients over gloo."""

import os
import tempfile

import torch
import torch.distributed as dist
from burn import Burn
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, store):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(256, 128), torch.randint(10, (256,))
    for _ in range(1_000_000):
        with Burn():
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    torch.multiprocessing.start_processes(train, (os.path.join(folder, "store"),), nprocs=2, start_method="fork")
