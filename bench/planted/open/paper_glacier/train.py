import time
import configparser
import os
from pathlib import Path

import torch

from gauges import Archive
from tcn import Forecaster

STEPS = int(os.environ.get("PLANTED_STEPS", "360"))


def pinball(pred, target, q=0.6):
    gap = target - pred
    return torch.maximum(q * gap, (q - 1) * gap).mean()


def make_step(model, optimizer):
    def step(past, future):
        optimizer.zero_grad(set_to_none=True)
        loss = pinball(model(past), future)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def main():
    opts = configparser.ConfigParser()
    opts.read(Path(__file__).with_name("options.ini"))
    torch.manual_seed(opts.getint("data", "seed"))
    began = time.perf_counter()
    archive = Archive(opts["data"])
    model = Forecaster(
        opts.getint("data", "stations"),
        opts.getint("data", "horizon"),
        opts.getint("model", "channels"),
        opts.getint("model", "levels"),
        opts.getint("model", "kernel"),
    )
    model.to(archive.series.dtype)
    optimizer = torch.optim.RAdam(model.parameters(), lr=opts.getfloat("fit", "lr"))
    step = make_step(model, optimizer)
    report = opts.getint("fit", "report")

    smooth = None
    for i, (past, future) in enumerate(archive.batches(opts.getint("fit", "batch"), seed=11), start=1):
        loss = step(past, future)
        smooth = loss if smooth is None else 0.95 * smooth + 0.05 * loss
        if i % report == 0 or i == STEPS:
            print(f"{i:4d}  pinball {loss.item():.7f}  smoothed {smooth.item():.7f}")
        if i == STEPS:
            print(f"{i} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")
            break


if __name__ == "__main__":
    main()
