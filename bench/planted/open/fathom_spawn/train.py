"""What lies on the sea bed? Sonar pings of very different length, two processes."""

import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from echo import EchoNet
from pings import PingBatches, make_pings
from torch.nn.parallel import DistributedDataParallel
from watch import Smooth, agree

RANKS = 2


def train(rank, port, steps):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.manual_seed(41)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    net = EchoNet()
    model = DistributedDataParallel(net)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    source = PingBatches(make_pings(), rank, RANKS, size=12)
    mean, step, began = Smooth(), 0, time.time()
    while step < steps:
        source.shuffle(step)
        for x, length, y in source:
            loss = torch.nn.functional.cross_entropy(model(x, length), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            mean.add(loss)
            mean.show(step, rank)
            if step == steps:
                break
    seconds = time.time() - began
    average = agree(mean.value) / RANKS
    slowest = agree(seconds, dist.ReduceOp.MAX)
    if rank == 0:
        print(f"{step} steps in {slowest:.2f}s, loss {average:.4f}", flush=True)
    dist.destroy_process_group()


def main():
    steps = int(os.environ.get("PLANTED_STEPS", 550))
    port = 29600 + os.getpid() % 300
    mp.start_processes(train, args=(port, steps), nprocs=RANKS, start_method="spawn")


if __name__ == "__main__":
    main()
