"""torchrun --standalone --nproc-per-node 2 train.py"""

import os
import time

import torch
import torch.distributed as dist

from ferry.engine import Engine
from ferry.harbour import Taps
from ferry.net import LineModel

CARDS, LINES, WIDTH, MICRO, ACCUMULATE = 40_000, 12, 24, 64, 8


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(40)
    taps = Taps(CARDS, LINES, seed=40)
    engine = Engine(LineModel(CARDS, LINES, WIDTH), lr=2e-3, accumulate=ACCUMULATE)
    generator = torch.Generator().manual_seed(400 + rank)
    steps = int(os.environ.get("PLANTED_STEPS", 120))

    start = time.perf_counter()
    for step in range(1, steps + 1):
        loss = engine.update([taps.draw(MICRO, generator) for _ in range(ACCUMULATE)])
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
    dist.all_reduce(loss)
    if rank == 0:
        print(f"{steps} steps in {time.perf_counter() - start:.2f} s, loss {loss.item() / dist.get_world_size():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
