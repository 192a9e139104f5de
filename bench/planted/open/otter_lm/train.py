"""A character model on two processes. torchrun --standalone --nproc_per_node=2 train.py"""

import argparse
import os
import time

import torch

import parallel
from model import CharModel
from text import Text


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--block", type=int, default=48)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--report", type=int, default=10)
    parser.add_argument("--seed", type=int, default=19)
    return parser.parse_args()


def main() -> None:
    torch.set_num_threads(1)
    opt = options()
    rank, world = parallel.start()
    torch.manual_seed(opt.seed)
    model = CharModel()
    parallel.same_weights(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr, fused=True)
    text = Text(rank, world, opt.seed)
    limit = int(os.environ.get("PLANTED_STEPS", opt.steps))
    value, begun = float("nan"), time.perf_counter()
    for step in range(1, limit + 1):
        ids, targets = text.batch(opt.batch, opt.block)
        loss = model(ids, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        parallel.average_gradients(model)
        optimizer.step()
        if step % opt.report == 0 or step == limit:
            value = parallel.mean_of(loss.item())
            if rank == 0:
                print(f"step {step} loss {value:.4f}", flush=True)
    seconds = time.perf_counter() - begun
    if rank == 0:
        torch.save(model.state_dict(), "chars.pt")
        print(f"{limit} steps in {seconds:.2f}s, loss {value:.6f}", flush=True)
    parallel.stop()


if __name__ == "__main__":
    main()
