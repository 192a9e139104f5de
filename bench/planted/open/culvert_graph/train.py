"""Levels in a town's drains an hour ahead, full graph, Chebyshev filters."""

import argparse
import os
import time

import torch

from spectral import DrainNet
from town import Rain, town


class Plateau:
    """Halves the rate when the mean loss of the last steps no longer falls."""

    def __init__(self, optimizer, patience=200):
        self.optimizer, self.patience, self.best, self.since = optimizer, patience, float("inf"), 0

    def see(self, loss):
        self.since += 1
        if loss < self.best:
            self.best, self.since = loss, 0
        if self.since > self.patience:
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.5
            self.since = 0


def by_decile(prediction, level):
    """Error for dry and for full drains."""
    edges = torch.quantile(level.flatten(), torch.linspace(0, 1, 6))
    rows = []
    for low, high in zip(edges, edges[1:]):
        inside = (level >= low) & (level <= high)
        rows.append((prediction[inside] - level[inside]).abs().mean().item())
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junctions", type=int, default=520)
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--batch", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(10)
    torch.set_num_threads(1)
    adjacency = town(args.junctions, 3)
    batches = Rain(adjacency, 1200, 4).batches(args.batch, args.window)
    model = DrainNet(adjacency, args.window)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    plateau = Plateau(optimizer)
    steps, began = int(os.environ.get("PLANTED_STEPS", 5000)), time.perf_counter()
    mean = 1.0
    for step, (past, level) in enumerate(batches, 1):
        prediction = model(past)
        loss = torch.nn.functional.huber_loss(prediction, level)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        mean += 0.05 * (loss.item() - mean)
        plateau.see(mean)
        deciles = by_decile(prediction.detach(), level)
        if step % 40 == 0:
            print(f"{step}: {mean:.4f}", *(f"{d:.3f}" for d in deciles), flush=True)
            torch.save({k: v for k, v in model.state_dict().items() if not k.endswith("adjacency")}, "drains.pt")
        if step == steps:
            break
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
