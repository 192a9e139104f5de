"""Learns to fill gaps in tree-ring chronologies. Plain script."""

import argparse
import os
import time

import torch

import loom
import rings

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--years", type=int, default=896)
parser.add_argument("--trees", type=int, default=180)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--hide", type=float, default=0.2)
parser.add_argument("--rate", type=float, default=1e-3)
parser.add_argument("--seed", type=int, default=1816)
args = parser.parse_args()

torch.manual_seed(args.seed)
dice = torch.Generator().manual_seed(args.seed)
widths = rings.stand(args.trees, args.years, args.seed)
leaf = loom.plant(args.width, args.layers, dice)
needle = loom.compass(args.years, args.width // args.heads)
optimizer = torch.optim.NAdam(leaf.values(), lr=args.rate)
steps = int(os.environ.get("PLANTED_STEPS", 400))
smooth = None

began = time.perf_counter()
for step in range(1, steps + 1):
    tree = torch.randint(args.trees, (1,), generator=dice)
    target = widths[tree]
    hidden = rings.gaps(target.shape, args.hide, dice)
    guess = loom.weave(leaf, target, hidden, args.heads, args.layers, needle)
    loss = ((guess - target).square() * hidden).sum() / hidden.sum().clamp(min=1)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(leaf.values(), 1.0)
    optimizer.step()
    value = loss.item()
    smooth = value if smooth is None else 0.95 * smooth + 0.05 * value
    if step % 40 == 0:
        print(f"step {step} of {steps}: squared error in the gaps {smooth:.4f}", flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {value:.5f}")
