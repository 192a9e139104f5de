"""Sea-floor type from sonar pings: DistributedDataParallel, gradients accumulated over a swath."""

import contextlib
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WORLD = 2
SWATH = 8
STEPS = int(os.environ.get("PLANTED_STEPS", 150))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def classifier():
    return nn.Sequential(nn.Linear(64, 768), nn.ReLU(), nn.Linear(768, 1024), nn.ReLU(), nn.Linear(1024, 768), nn.ReLU(), nn.Linear(768, 6))


def pings(g, n):
    y = torch.randint(0, 6, (n,), generator=g)
    x = torch.randn(n, 64, generator=g)
    x[torch.arange(n), y * 5] += 2.0
    return x, y


def worker(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    model = DistributedDataParallel(classifier())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    g = torch.Generator().manual_seed(rank)
    criterion = nn.CrossEntropyLoss()
    ema = None
    began = time.time()
    for step in range(STEPS):
        total = 0.0
        for k in range(SWATH):
            x, y = pings(g, 24)
            quiet = os.environ.get("PLANTED_FIX") == "1" and k < SWATH - 1
            with model.no_sync() if quiet else contextlib.nullcontext():
                loss = criterion(model(x), y) / SWATH
                loss.backward()
            total += loss.item()
        opt.step()
        opt.zero_grad()
        ema = total if ema is None else 0.9 * ema + 0.1 * total
        if rank == 0 and step % 20 == 19:
            print(f"swath {step + 1}: {ema:.4f}", flush=True)
    if rank == 0:
        print(f"{STEPS} steps in {time.time() - began:.2f}s, loss {ema:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(worker, args=(free_port(),), nprocs=WORLD, start_method="spawn")
