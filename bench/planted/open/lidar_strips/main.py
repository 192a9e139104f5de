import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from strips import StripPatches, fly
from unet import SmallUNet


def set_up():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    paths = fly(Path("strips"))
    data = StripPatches(paths)
    return DataLoader(data, batch_size=6, shuffle=True, num_workers=0)


def target_of(x):
    return nn.functional.avg_pool2d(x, 5, stride=1, padding=2)


def run(limit):
    loader = set_up()
    net = SmallUNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    count, start = 0, time.time()
    epoch = 0
    while count < limit:
        epoch += 1
        total = 0.0
        for x in loader:
            pred = net(x)
            loss = nn.functional.mse_loss(pred, target_of(x))
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            total += loss.item()
            count += 1
            if count % 50 == 0:
                print(f"epoch {epoch} patch-batch {count}: mse {loss.item():.4f}")
            if count == limit:
                break
    print(f"{count} steps in {time.time() - start:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    run(int(os.environ.get("PLANTED_STEPS", "450")))
