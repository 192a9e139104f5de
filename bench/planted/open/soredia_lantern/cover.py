import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from plates import SPECIES, wall
from survey import Quadrats

BATCH = 8


def block(fan_in, fan_out, stride=1):
    return nn.Sequential(nn.Conv2d(fan_in, fan_out, 3, stride, 1), nn.BatchNorm2d(fan_out), nn.ReLU())


def network():
    return nn.Sequential(
        block(3, 16, 2),
        block(16, 32),
        block(32, 64, 2),
        block(64, 64),
        nn.Conv2d(64, (SPECIES + 1) * 16, 1),
        nn.PixelShuffle(4),
    )


def weights(covers):
    share = torch.bincount(torch.from_numpy(covers[::4, ::4, ::4]).flatten().long(), minlength=SPECIES + 1).float()
    return (share.sum() / share.clamp(min=1)).sqrt().clamp(max=5)


def train_step(net, optimizer, criterion, patch, cover):
    loss = criterion(net(patch), cover)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    steps = int(os.environ.get("PLANTED_STEPS", 480))
    torch.manual_seed(19)
    plates, covers = wall(24, seed=19)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, nesterov=True)
    criterion = nn.CrossEntropyLoss(weights(covers))
    loader = DataLoader(Quadrats(plates, covers, steps * BATCH, seed=20), BATCH, num_workers=1, prefetch_factor=4)
    began = time.perf_counter()
    for step, (patch, cover) in enumerate(loader, 1):
        loss = train_step(net, optimizer, criterion, patch, cover)
        if step % 40 == 0:
            print(f"patch {step * BATCH}: {loss:.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.2f} s, loss {loss:.5f}")


if __name__ == "__main__":
    main()
