import os
import tempfile
import time
from pathlib import Path

import torch
import torch.nn as nn
from stream import FEATURES, ScanLog, write_scanlog
from torch.utils.data import DataLoader


def make_model():
    layers, width = [], 512
    sizes = [FEATURES, width, width, width, width]
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def fit():
    torch.set_num_threads(1)
    torch.manual_seed(21)
    total = int(os.environ.get("PLANTED_STEPS", 730))
    with tempfile.TemporaryDirectory() as tmp:
        log = Path(tmp) / "scans.log"
        write_scanlog(log, rows=20480, seed=3)
        loader = iter(DataLoader(ScanLog(log), batch_size=128))
        net, bce = make_model(), nn.BCEWithLogitsLoss()
        opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
        ema = None
        tic = time.time()
        for i in range(1, total + 1):
            x, y = next(loader)
            logit = net(x).squeeze(-1)
            loss = bce(logit, y)
            loss.backward()
            opt.step()
            opt.zero_grad()
            ema = loss.item() if ema is None else 0.95 * ema + 0.05 * loss.item()
            if i % 200 == 0:
                print("batch", i, "ema", f"{ema:.4f}")
        toc = time.time()
    print(f"{total} steps in {toc - tic:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    fit()
