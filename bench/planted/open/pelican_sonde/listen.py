"""Which animal calls? Learn it from the lake's recordings."""

import argparse
import os
import tempfile
import time

import numpy as np
import torch
from deepear.model import Ear
from deepear.records import Clips, write_shard
from torch.utils.data import DataLoader


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--clips", type=int, default=128, help="per shard")
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--species", type=int, default=14)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 400)))
    parser.add_argument("--seed", type=int, default=5)
    return parser.parse_args()


def main(args: argparse.Namespace, home: str) -> None:
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    paths = [os.path.join(home, f"buoy{number:02d}.rec") for number in range(args.shards)]
    for path in paths:
        write_shard(path, rng, args.clips, args.length, args.species)
    loader = DataLoader(Clips(paths, args.seed), batch_size=args.batch)
    model = Ear(args.species)
    optimizer = torch.optim.Adam(model.parameters(), args.rate, fused=True)
    began, recent = time.perf_counter(), 0.0
    for step, (waves, names) in enumerate(loader, 1):
        loss = torch.nn.functional.cross_entropy(model(waves), names)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0 or step == args.steps:
            recent = loss.item()
            print(f"{step:5d}  {recent:.4f}", flush=True)
        if step == args.steps:
            break
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {recent:.6f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        main(options(), home)
