"""python -m grain.train"""

import argparse
import os
import time

import torch

from .duel import Duel
from .nets import carver, judge
from .strips import saw, shuffled


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--strips", type=int, default=8192)
    parser.add_argument("--length", type=int, default=320)
    parser.add_argument("--latent", type=int, default=64)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--rounds", type=int, default=320)
    parser.add_argument("--seed", type=int, default=9)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    duel = Duel(carver(args.latent, args.width, args.length), judge(args.length, args.width), args.latent, args.rate)
    real = shuffled(saw(args.strips, args.length, args.seed), args.batch, args.seed)
    rounds = int(os.environ.get("PLANTED_STEPS", args.rounds))
    began = time.perf_counter()
    for number in range(1, rounds + 1):
        judged = duel.teach_judge(next(real))
        carved = duel.teach_carver(args.batch)
        if number % 20 == 0:
            print(f"round {number} judge {judged.item():.4f} carver {carved.item():.4f}", flush=True)
    print(f"{rounds} steps in {time.perf_counter() - began:.2f}s, loss {judged.item() + carved.item():.6f}")


if __name__ == "__main__":
    main()
