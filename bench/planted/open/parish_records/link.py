"""Learns which entries of the registers belong together."""

import os
import random
import time

import torch
from torch import nn

from features import pairs
from memory import Housekeeper
from registers import registers


class Linker(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.parts = nn.ModuleList(nn.Embedding(20, width) for _ in range(8))
        self.body = nn.Sequential(nn.Linear(8 * width, 256), nn.ReLU(), nn.Linear(256, 128))
        self.judge = nn.Sequential(nn.Linear(3 * 128, 128), nn.ReLU(), nn.Linear(128, 1))

    def embed(self, r):
        return self.body(torch.cat([part(r[:, i]) for i, part in enumerate(self.parts)], 1))

    def forward(self, left, right):
        a, b = self.embed(left), self.embed(right)
        return self.judge(torch.cat([a * b, (a - b).abs(), a + b], 1)).squeeze(1)


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 500))
    records = registers(20000)
    print(f"{len(records)} baptisms read")
    model, rng, house = Linker(), random.Random(3), Housekeeper()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.03)
    start = time.perf_counter()
    for step in range(1, steps + 1):
        left, right, label = pairs(records, 256, rng)
        logits = model(left, right)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, label)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        house.tidy(step)
        if step % 50 == 0:
            right_share = ((logits > 0) == (label > 0.5)).float().mean().item()
            print(f"step {step}: loss {loss.item():.4f}, right {right_share:.3f}, peak {house.peak} MB")
    print(f"{steps} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
