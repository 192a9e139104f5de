"""How worn are the wheels?"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from .data.dataset import Rides
from .data.depot import Depot, fill
from .wheel import Wheel


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    loader = DataLoader(Rides(Depot(args.depot, args.rides)), args.batch, shuffle=True, drop_last=True)
    model = Wheel(args.channels, 32, 64)
    optimizer = torch.optim.NAdam(model.parameters(), 1e-3, foreach=True)
    began, step, kept = time.perf_counter(), 0, []
    while step < args.steps:
        for track, wear in loader:
            loss = (model(track) - wear).abs().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            kept.append(loss.detach())
            step += 1
            if step == args.steps:
                break
        print(f"step {step} mean error {torch.stack(kept[-50:]).mean().item():.4f}", flush=True)
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {kept[-1].item():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tram", description=__doc__)
    parser.add_argument("job", choices=["fill", "train"])
    parser.add_argument("--depot", type=Path, required=True)
    parser.add_argument("--rides", type=int, default=1200)
    parser.add_argument("--ticks", type=int, default=512)
    parser.add_argument("--channels", type=int, default=5)
    parser.add_argument("--lost", type=float, default=0.006)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 450)))
    args = parser.parse_args()
    if args.job == "fill":
        fill(args.depot, args.rides, args.ticks, args.channels, args.lost, args.seed)
    else:
        train(args)
