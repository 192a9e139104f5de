"""A loop with timers of its own: with the argument `timed`, it synchronises around each phase and prints milliseconds a step."""

import json
import sys
import time

import torch
from torch import nn

TIMED = "timed" in sys.argv
SPENT = {"Fwd": 0.0, "Bwd": 0.0, "Opt": 0.0}


def clock():
    torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(4096, 4096), nn.GELU())]).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    x = torch.randn(8192, 4096, device="cuda")
    for step in range(120):
        optimizer.zero_grad()
        marks = [clock()] if TIMED else []
        y = model(x)
        marks += [clock()] if TIMED else []
        loss = y.square().mean()
        marks += [clock()] if TIMED else []
        loss.backward()
        marks += [clock()] if TIMED else []
        optimizer.step()
        marks += [clock()] if TIMED else []
        if TIMED and step >= 20:
            for name, (begin, end) in zip(SPENT, ((0, 1), (2, 3), (3, 4)), strict=True):
                SPENT[name] += (marks[end] - marks[begin]) * 1000 / 100
        if step % 10 == 0:
            loss.item()
    print(json.dumps(SPENT))


if __name__ == "__main__":
    main()
