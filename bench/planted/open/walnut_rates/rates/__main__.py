"""python -m rates [--optimizer adamw] [--features 48] …"""

import argparse
import os
import time

import torch
import torch.nn.functional as F

from rates.additive import Additive
from rates.optim import make_optimizer
from rates.table import batches, make_book


def main() -> None:
    parser = argparse.ArgumentParser(prog="rates")
    parser.add_argument("--policies", type=int, default=8192)
    parser.add_argument("--features", type=int, default=96)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--decay", type=float, default=1e-4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 420)))
    parser.add_argument("--seed", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    stream = batches(*make_book(args.policies, args.features, args.seed), args.batch_size, args.seed)
    model = Additive(args.features, args.width)
    optimizer = make_optimizer(args.optimizer, model, args.lr, args.decay)

    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        x, y = next(stream)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:4d}  mse {loss.item():.4f}", flush=True)
    print(f"{args.steps} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
