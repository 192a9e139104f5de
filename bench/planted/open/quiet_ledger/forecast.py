"""Forecast the load of the next day."""

import argparse
import math
import os
import time
from pathlib import Path

import torch
from forecaster import DAY, Forecaster, targets
from journal import Journal
from meters import Windows, write


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--meters", type=int, default=60)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rate", type=float, default=6e-4)
    parser.add_argument("--report", type=int, default=10)
    parser.add_argument("--check", type=int, default=75)
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "150")))
    return parser.parse_args()


def rate_at(step: int, peak: float, steps: int, warm: int = 20) -> float:
    if step < warm:
        return peak * (step + 1) / warm
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * min(step / max(steps, 1), 1.0))))


@torch.no_grad()
def check(model: Forecaster, windows: Windows, batch: int) -> float:
    model.eval()
    past, future = windows.get_batch(batch, "valid")
    error = (model(past)[:, -1] - future).abs().mean().item()
    model.train()
    return error


def main() -> None:
    options = arguments()
    torch.manual_seed(options.seed)
    store = Path(os.environ["LOAD_STORE"])
    write(store / "load.npy", options.meters, options.seed)
    windows = Windows(store / "load.npy", options.days * DAY, DAY, options.seed)
    model = Forecaster(options.width, options.depth, options.heads)
    optimizer = torch.optim.AdamW(model.parameters(), options.rate, betas=(0.9, 0.95), fused=True)
    journal = Journal(store / "journal.csv", vars(options))

    began = time.perf_counter()
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, options.rate, options.steps)
        past, future = windows.get_batch(options.batch)
        loss = torch.nn.functional.mse_loss(model(past), targets(past, future))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        row = journal.add(step + 1, loss.item(), norm.item(), optimizer.param_groups[0]["lr"])
        if (step + 1) % options.report == 0:
            print(f"step {row['step']} loss {row['smooth']:.4f} gradient {row['gradient']:.3f}", flush=True)
        if (step + 1) % options.check == 0:
            print(f"step {step + 1} error {check(model, windows, 32):.4f}", flush=True)
    print(f"{options.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
