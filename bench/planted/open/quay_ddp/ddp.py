import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from cranes import loads


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(8, width)

    def forward(self, x):
        return torch.relu(x + self.norm(self.b(torch.relu(self.a(x)))))


def network(width=32):
    return nn.Sequential(
        nn.Conv2d(2, width, 3, padding=1),
        nn.ReLU(),
        Block(width),
        nn.MaxPool2d(2),
        Block(width),
        nn.MaxPool2d(2),
        Block(width),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(16 * width, 2),
    )


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    torch.set_num_threads(1)
    data = loads(2048)
    sampler = DistributedSampler(data, seed=7)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
    steps, done, epoch = int(os.environ.get("PLANTED_STEPS", 200)), 0, 0
    dist.barrier()
    began = time.perf_counter()
    while done < steps:
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if rank == 0 and done % 20 == 0:
                print(f"epoch {epoch} step {done} loss {loss.item():.4f}", flush=True)
            if done == steps:
                break
        epoch += 1
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"mean of the ranks' last losses {mean.item() / dist.get_world_size():.4f}", flush=True)
            torch.save(model.module.state_dict(), "crane.pt")
    if rank == 0:
        print(f"{done} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
