import json
import os
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from hours import Hours
from reel import Reel, record

S = json.loads(Path("settings.json").read_text())


def build(filters, depth, classes, channels):
    layers, wide = [], channels
    for _ in range(depth):
        layers += [nn.Conv1d(wide, filters, 7, stride=2, padding=3), nn.ReLU()]
        wide, filters = filters, 2 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(4 * wide, classes))


def forever(loader):
    while True:
        yield from loader


def main():
    torch.manual_seed(S["seed"])
    torch.set_num_threads(1)
    a = S["archive"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reel.f32"
        kinds = record(path, a["hours"], a["rate"], a["channels"], S["seed"])
        reel = Reel(path, (a["hours"], a["channels"], a["rate"]), a["pace"], a["settle"])
        loader = DataLoader(Hours(reel, kinds), S["batch"], shuffle=True, drop_last=True)
        net = build(**S["net"], channels=a["channels"])
        opt = torch.optim.SGD(net.parameters(), S["lr"], S["momentum"], nesterov=True)
        steps, began = int(os.environ.get("PLANTED_STEPS", S["steps"])), time.perf_counter()
        for n, (wave, kind) in enumerate(forever(loader), 1):
            loss = nn.functional.cross_entropy(net(wave), kind)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if n % S["report"] == 0:
                print(f"{n}: {loss.item():.4f}", flush=True)
            if n == steps:
                break
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
