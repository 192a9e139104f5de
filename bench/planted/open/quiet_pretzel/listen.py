"""Tells bat species by their calls."""

import argparse
import itertools
import os
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn

from feed import Feed
from survey import SPECIES, export


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=8000)
    parser.add_argument("--per-night", type=int, default=1920)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=77)
    return parser.parse_args()


def ear(width):
    def stage(a, b, stride):
        return [nn.Conv1d(a, b, 5, stride=stride, padding=2), nn.GroupNorm(4, b), nn.SiLU()]

    return nn.Sequential(
        *stage(2, width, 1),
        *stage(width, width, 2),
        *stage(width, 2 * width, 2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(2 * width, len(SPECIES)),
    )


def nights(feed):
    for number in itertools.count():
        for traces, kinds in feed.night(number):
            yield number, traces, kinds


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    steps = int(os.environ.get("PLANTED_STEPS", 700))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls.jsonl")
        export(path, args.calls, args.seed)
        feed = Feed(path, args.calls, args.per_night, args.batch, args.workers, args.seed)
        net = ear(args.width)
        opt = torch.optim.Adam(net.parameters(), args.lr)
        heard, began = 0, time.perf_counter()
        for step, (night, traces, kinds) in enumerate(itertools.islice(nights(feed), steps), 1):
            loss = F.cross_entropy(net(traces), kinds, label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            heard += len(kinds)
            if step % 40 == 0:
                print(f"night {night}: {heard} calls, loss {loss.item():.4f}", flush=True)
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
