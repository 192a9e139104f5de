"""Protein from spectra. Usage: python train.py [--epochs 60] [--batch 64] [--workers 2]"""

import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, RandomSampler

from dataset import Spectra
from network import SpectraNet

FIXED = os.environ.get("PLANTED_FIX") == "1"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=21)
    return parser.parse_args()


def make_loader(args: argparse.Namespace) -> DataLoader:
    spectra = Spectra(seasons=2, samples=128)
    return DataLoader(
        spectra,
        batch_size=args.batch,
        sampler=RandomSampler(spectra, generator=torch.Generator().manual_seed(args.seed)),
        num_workers=args.workers,
        persistent_workers=FIXED,
    )


def main() -> None:
    args = parse()
    torch.manual_seed(args.seed)
    loader = make_loader(args)
    model = SpectraNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
    limit = int(os.environ.get("PLANTED_STEPS", args.epochs * len(loader)))

    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        running = torch.zeros(())
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
            steps += 1
            if steps >= limit:
                break
        if epoch % 10 == 0:
            print(f"epoch {epoch}: mse {running.item() / len(loader):.4f}", flush=True)
        if steps >= limit:
            break
    print(f"{steps} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
