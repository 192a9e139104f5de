"""Which group sang? A convolutional net over pitch contours, compiled."""

import argparse
import os
import time
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader

from songs import GROUPS, calls, together

torch._dynamo.config.recompile_limit = 512
torch._dynamo.config.accumulated_recompile_limit = 1024


class Contour(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.inp = nn.Linear(3, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.out = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, GROUPS))

    def forward(self, x, present):
        h = self.inp(x) * present
        for conv in self.convs:
            h = h + torch.relu(conv(h.transpose(1, 2)).transpose(1, 2)) * present
        return self.out((h * present).sum(1) / present.sum(1))


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 170)))
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--round-to", type=int, default=50 if os.environ.get("PLANTED_FIX") == "1" else 1)
    parser.add_argument("--backend", default="aot_eager", help="inductor where a C++ compiler is at hand")
    return parser.parse_args()


def main():
    args = options()
    torch.manual_seed(6)
    torch.set_num_threads(1)
    loader = DataLoader(calls(2400), args.batch, shuffle=True, drop_last=True, collate_fn=partial(together, step=args.round_to))
    model = Contour()
    net = torch.compile(model, backend=args.backend, dynamic=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    began, step = time.perf_counter(), 0
    while step < args.steps:
        for x, present, group in loader:
            loss = nn.functional.cross_entropy(net(x, present), group)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 20 == 0:
                print(f"step {step:4d} loss {loss.item():.4f} length {x.shape[1]}")
            if step == args.steps:
                break
    print(f"{step} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
