"""Learns where lace pulls. All settings stand in Plan."""

import os
import time
from dataclasses import dataclass, field

import torch
from torch.utils.data import DataLoader

from lace import pricking_book, side_by_side
from lion import Lion
from net import Tension


@dataclass
class Plan:
    patterns: int = 1728
    features: int = 48
    width: int = 16
    batch: int = 288
    lr: float = 1e-3
    seed: int = 1561
    steps: int = field(default_factory=lambda: int(os.environ.get("PLANTED_STEPS", 1300)))


class Progress:
    def __init__(self, every):
        self.every, self.mean = every, None

    def after_step(self, step, loss):
        self.mean = loss if self.mean is None else 0.9 * self.mean + 0.1 * loss
        if step % self.every == 0:
            print(f"  {step:4d} stitches, mean squared error {self.mean:.4f}", flush=True)


class Halving:
    """Halves the rate at given steps."""

    def __init__(self, optimizer, at):
        self.optimizer, self.at = optimizer, set(at)

    def after_step(self, step, loss):
        if step in self.at:
            for group in self.optimizer.param_groups:
                group["lr"] /= 2


def rounds(loader):
    while True:
        yield from loader


def main(plan):
    torch.manual_seed(plan.seed)
    book = pricking_book(plan.patterns, plan.features, plan.seed)
    loader = DataLoader(book, plan.batch, shuffle=True, drop_last=True, collate_fn=side_by_side)
    model = Tension(plan.features, plan.width)
    optimizer = Lion(model.parameters(), plan.lr, decay=0.01)
    watchers = [Progress(50), Halving(optimizer, (600, 1000))]

    began = time.perf_counter()
    for step, pattern in zip(range(1, plan.steps + 1), rounds(loader)):
        loss = torch.nn.functional.mse_loss(model(pattern), pattern.tension)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        for watcher in watchers:
            watcher.after_step(step, value)
    print(f"{plan.steps} steps in {time.perf_counter() - began:.3f} s, loss {value:.5f}")


if __name__ == "__main__":
    main(Plan())
