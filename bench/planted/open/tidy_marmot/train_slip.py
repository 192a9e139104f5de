"""Find slow slips in strain records, with Lightning Fabric on one device."""

import argparse
import os
import time

import torch
from lightning.fabric import Fabric
from strain.feed import Archive
from strain.net import SlipNet
from strain.stations import network
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--stations", type=int, default=40)
parser.add_argument("--old", type=int, default=5, help="stations with worn loggers")
parser.add_argument("--gauges", type=int, default=4)
parser.add_argument("--samples", type=int, default=640)
parser.add_argument("--batch", type=int, default=10)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--depth", type=int, default=5)
parser.add_argument("--rate", type=float, default=2e-3)
parser.add_argument("--steps", type=int, default=280)
parser.add_argument("--seed", type=int, default=31)


def main(args: argparse.Namespace) -> None:
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(args.seed, verbose=False)
    model = SlipNet(args.gauges, args.width, args.depth)
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters(), args.rate, fused=True))
    archive = Archive(network(args.stations, args.gauges, args.old, args.seed), args.samples, args.batch, args.seed)
    batches = iter(fabric.setup_dataloaders(DataLoader(archive, batch_size=None)))
    steps, began = int(os.environ.get("PLANTED_STEPS", args.steps)), time.perf_counter()
    for step in range(1, steps + 1):
        strain, slip = next(batches)
        loss = nn.functional.cross_entropy(model(strain), slip)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        if step % 20 == 0:
            fabric.print(f"step {step} loss {loss.item():.4f}", flush=True)
    fabric.print(f"{steps} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(parser.parse_args())
