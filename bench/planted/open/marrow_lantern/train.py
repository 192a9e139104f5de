"""Tells the clans of sperm whales by their clicks, a process for each array; started by torch.distributed.run."""

import argparse
import itertools
import os
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from hydrophone import BANDS, CLANS, Array, lay_down
from listener import Listener


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 450)))
    parser.add_argument("--talk", type=int, default=100)
    return parser.parse_args()


def endless(array):
    for number in itertools.count():
        yield from array.voyage(number)


def common(value):
    value = value.detach().clone()
    dist.all_reduce(value)
    return value.item() / dist.get_world_size()


def main():
    opt = options()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    place = [tempfile.mkdtemp(prefix="codas-") if rank == 0 else None]
    dist.broadcast_object_list(place)
    if rank == 0:
        lay_down(place[0])
    dist.barrier()
    array = Array(place[0], rank, opt.batch)
    torch.manual_seed(8)
    model = DistributedDataParallel(Listener(BANDS, CLANS))
    optimizer = torch.optim.AdamW(model.parameters(), opt.lr)
    began = time.perf_counter()
    for step, (sound, frames, clan) in enumerate(itertools.islice(endless(array), opt.steps), 1):
        loss = F.cross_entropy(model(sound, frames), clan)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % opt.talk == 0:
            mean = common(loss)
            if rank == 0:
                print(f"step {step}: loss {mean:.4f}, {step / (time.perf_counter() - began):.1f} steps/s", flush=True)
    seconds = time.perf_counter() - began
    mean = common(loss)
    if rank == 0:
        print(f"{opt.steps} steps in {seconds:.3f} s, loss {mean:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
