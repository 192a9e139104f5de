"""What is in the leaf? From its spectrum."""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from orchard.functional import make_update, start
from orchard.net import leafnet
from orchard.sensors import Calibration, fly, ship


def main(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        ship(Path(folder, "maker.json"), args.bands, rng)
        calibrate = Calibration.load(Path(folder, "maker.json"))
    counts, leaf = fly(args.trees, args.bands, rng)
    spectra = torch.from_numpy(calibrate(counts))
    leaf = torch.from_numpy(leaf).to(spectra)
    net = leafnet(args.bands, args.width, args.depth)
    params, speed = start(net, spectra)
    update = make_update(net, args.rate, 0.9)
    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        rows = torch.from_numpy(rng.integers(args.trees, size=args.batch))
        params, speed, loss = update(params, speed, spectra[rows], leaf[rows])
        if step % args.tell == 0:
            print(f"step {step}: {loss.item():.5f}", flush=True)
    print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"trees": 6000, "bands": 160, "width": 320, "depth": 3, "batch": 192, "tell": 50, "seed": 14}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 400)))
    main(parser.parse_args())
