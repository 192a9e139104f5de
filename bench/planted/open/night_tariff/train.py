"""Forecast the load of houses: a plain loop."""

import argparse
import math
import os
import tempfile
import time
from pathlib import Path

import torch
from forecaster import Forecaster
from meters import Meters


def rate(step: int, args: argparse.Namespace) -> float:
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    return args.lr * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, step / args.horizon))))


@torch.no_grad()
def held_out(model: Forecaster, meters: Meters, args: argparse.Namespace) -> float:
    return sum(model.loss(*meters.get_batch(args.batch_size, args.length)).item() for _ in range(2)) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--houses", type=int, default=60)
    parser.add_argument("--weeks", type=int, default=12)
    parser.add_argument("--length", type=int, default=672, help="half hours that the model sees: two weeks")
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--horizon", type=int, default=400)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "200")))
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train, valid = Meters(args.houses, args.weeks, 1), Meters(10, args.weeks, 2)
    model = Forecaster(args.width, args.heads, args.blocks)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed}, {"params": plain, "weight_decay": 0.0}], lr=args.lr)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for step in range(args.steps):
            for group in optimizer.param_groups:
                group["lr"] = rate(step, args)
            loss = model.loss(*train.get_batch(args.batch_size, args.length))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 20 == 0:
                print(f"{step:4d}  {loss.item():.4f}", flush=True)
            if step % 80 == 79:
                print(f"{step:4d}  held out {held_out(model, valid, args):.4f}", flush=True)
                torch.save(model.state_dict(), Path(folder) / "forecaster.pt")
        print(f"{args.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
