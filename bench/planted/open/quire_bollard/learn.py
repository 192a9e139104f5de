"""Learns to know a tree again by its bark; each process looks at its own half of the grove.

python -m torch.distributed.run --standalone --nproc_per_node=2 learn.py
"""

import argparse
import gc
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from bank import Bank
from bark import Grove
from twins import Twins, contrast


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--width", type=int, default=192)
    p.add_argument("--out", type=int, default=128)
    p.add_argument("--bank", type=int, default=12 * 1600)
    p.add_argument("--heat", type=float, default=0.1)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 800)))
    return p.parse_args()


def learn(o):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(100 + rank)
    grove = Grove()
    twins = Twins(len(grove.at), o.width, o.out)
    query_of = DistributedDataParallel(twins)
    bank = Bank(o.bank, o.out, rank, world)
    opt = torch.optim.SGD(twins.quick.parameters(), o.lr * 50, momentum=0.9, foreach=True)
    half = torch.arange(rank, len(grove.marks), world)
    began = time.perf_counter()
    for step in range(1, o.steps + 1):
        trees = half[torch.randint(len(half), (o.batch,), generator=g)]
        one, two = grove.look(trees, g), grove.look(trees, g)
        key = twins.key(two)
        loss = contrast(query_of(one), key, bank.everything(), o.heat)
        opt.zero_grad()
        loss.backward()
        opt.step()
        twins.follow(0.01)
        bank.store(key)
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    took = time.perf_counter() - began
    if rank == 0:
        print(f"{o.steps} steps in {took:.3f} s, loss {loss.item():.5f}", flush=True)


def main():
    dist.init_process_group("gloo")
    learn(options())
    gc.collect()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
