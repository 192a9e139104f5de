import argparse
import os
import tempfile
import time
from pathlib import Path

import torch

from camera import film
from players import Frost, Glaciologist, hinge
from spool import Spool


def options():
    parser = argparse.ArgumentParser(description="A GAN of snow crystals")
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 350)))
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=1885)
    return parser.parse_args()


def main():
    args = options()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="winter") as folder:
        film(Path(folder), args.frames, args.seed)
        frost, judge = Frost(), Glaciologist()
        grow = torch.optim.Adam(frost.parameters(), args.lr, (0.5, 0.99))
        learn = torch.optim.Adam(judge.parameters(), 2 * args.lr, (0.5, 0.99))
        spool, began = Spool(folder, args.batch, args.seed), time.perf_counter()
        for step, real in enumerate(spool, 1):
            fake = frost(torch.randn(args.batch, frost.seeds))
            blame = hinge(judge(real), judge(fake.detach()))
            learn.zero_grad()
            blame.backward()
            learn.step()

            judge.requires_grad_(False)
            loss = -judge(fake).mean()
            grow.zero_grad()
            loss.backward()
            grow.step()
            judge.requires_grad_(True)
            if step % 50 == 0:
                print(f"{step}: judge {blame.item():.4f}, frost {loss.item():.4f}", flush=True)
            if step == args.steps:
                break
        took = time.perf_counter() - began
        spool.close()
        print(f"{args.steps} steps in {took:.3f} s, loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    main()
