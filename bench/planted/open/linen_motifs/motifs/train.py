"""python -m motifs.train [--batch 24]"""

import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from motifs.batching import assemble
from motifs.nets import MotifNet
from motifs.weave import FAMILIES, FEATURES, Drafts


def run(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    loader = DataLoader(Drafts(args.drafts, args.seed), args.batch, shuffle=True, drop_last=True, collate_fn=assemble)
    model = MotifNet(FEATURES, args.width, FAMILIES)
    optimizer = torch.optim.NAdam(model.parameters(), lr=args.lr)
    steps, start = 0, time.perf_counter()
    while steps < args.steps:
        for batch in loader:
            loss = F.cross_entropy(model(batch.events, batch.mask), batch.family)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps % 40 == 0:
                print(f"{steps:5d} {loss.item():.4f}", flush=True)
            if steps == args.steps:
                break
    print(f"{steps} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--drafts", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 400)))
    parser.add_argument("--seed", type=int, default=19)
    run(parser.parse_args())
