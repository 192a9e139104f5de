"""Learns to hear how many cents each partial of a bell is off its ideal."""

import argparse
import os
import time

import torch
from torch.nn.functional import smooth_l1_loss

from ear import Ear
from strikes import PARTIALS, Bench
from tray import lay_out


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strikes", type=int, default=900)
    parser.add_argument("--tray", type=int, default=3)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--shells", type=int, default=7)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 650)))
    parser.add_argument("--tell-every", type=int, default=100)
    return parser.parse_args()


def main():
    args = arguments()
    torch.manual_seed(41)
    bench = Bench(args.strikes, seed=7)
    ear = Ear(args.channels, args.shells, len(PARTIALS))
    optimizer = torch.optim.AdamW(ear.parameters(), lr=args.rate)
    trays = bench.rounds(args.tray)
    smooth, began = None, time.perf_counter()
    for step in range(1, args.steps + 1):
        sound, there, cents = lay_out(next(trays))
        loss = smooth_l1_loss(ear(sound, there), cents)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.tell_every == 0:
            now = loss.item()
            smooth = now if smooth is None else 0.8 * smooth + 0.2 * now
            print(f"[{step:5d}] loss {smooth:.4f}", flush=True)
    print(f"{args.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
