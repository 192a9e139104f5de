"""Contrastive embedding of lichen spectra."""

import os
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

import library
from feed import feeder


class Eye(nn.Module):
    def __init__(self, width=320, out=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(library.BANDS + 2, width),
            nn.ELU(),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, width),
            nn.ELU(),
            nn.Linear(width, out),
        )

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


def nce(a, b, heat=0.15):
    near = a @ b.T / heat
    own = torch.arange(len(a))
    return 0.5 * (nn.functional.cross_entropy(near, own) + nn.functional.cross_entropy(near.T, own))


class Fit:
    def __init__(self, folder, per_round=4608, batch=256):
        self.feeder = feeder(library.Pairs(folder, per_round), batch)
        self.eye = Eye()
        self.rule = torch.optim.Adam(self.eye.parameters(), 1e-3)
        self.done, self.hooks = 0, []

    def rounds(self, steps):
        while self.done < steps:
            for first, second in self.feeder:
                a, b = self.eye(torch.cat((first, second))).chunk(2)
                loss = nce(a, b)
                self.rule.zero_grad()
                loss.backward()
                self.rule.step()
                self.done += 1
                if self.done == steps:
                    break
            yield loss.item()


if __name__ == "__main__":
    torch.manual_seed(19)
    steps = int(os.environ.get("PLANTED_STEPS", 500))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library.write(folder, 120_000, 400, 19)
        fit, began = Fit(folder), time.time()
        for number, loss in enumerate(fit.rounds(steps), 1):
            if number % 5 == 0:
                print(f"round {number}: loss {loss:.4f}", flush=True)
        print(f"{steps} steps in {time.time() - began:.3f} s, loss {loss:.6f}")
