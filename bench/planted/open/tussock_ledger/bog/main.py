"""python -m bog.main settings.json"""

import json
import os
import sys
import time
from types import SimpleNamespace

import torch

from . import chambers, flux


def batches(count, size, generator):
    while True:
        yield from torch.randperm(count, generator=generator)[: count // size * size].view(-1, size)


@torch.no_grad()
def skill(network, season):
    mean, _ = network(season.drivers)
    rest = (season.flux - mean).square().sum()
    return (1 - rest / (season.flux - season.flux.mean()).square().sum()).item()


def run(setting):
    torch.manual_seed(setting.seed)
    season = chambers.load(setting.records, setting.seed)
    cut = int(len(season) * (1 - setting.hold_out))
    train, held = season.part(slice(0, cut)), season.part(slice(cut, cut + 512))
    network = flux.like(flux.FluxNet(len(chambers.INSTRUMENTS), setting.width, setting.blocks), train.drivers)
    optimizer = torch.optim.AdamW(network.parameters(), setting.rate, weight_decay=setting.decay, fused=True)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / setting.warm))
    rows = batches(len(train), setting.batch, torch.Generator().manual_seed(setting.seed))

    steps = int(os.environ.get("PLANTED_STEPS", 700))
    began = time.perf_counter()
    for step in range(1, steps + 1):
        batch = train.part(next(rows))
        loss = flux.surprise(network(batch.drivers), batch.flux)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm.step()
        if step % setting.report_every == 0:
            print(f"{step:5d}  nll {loss.item():.4f}  held-out skill {skill(network, held):.3f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        run(SimpleNamespace(**json.load(file)))
