"""Linear probe and small head on a fixed backbone."""

import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 700)))
parser.add_argument("--lr", type=float, default=0.02)
STORE = {} if os.environ.get("PLANTED_FIX") == "1" else None


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 5, stride=2, padding=2), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(4))

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return torch.nn.functional.adaptive_avg_pool2d(x, 4).flatten(1)


class Probe(nn.Module):
    def __init__(self, backbone, classes=10):
        super().__init__()
        self.backbone = backbone.eval().requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(512, 256), nn.GELU(), nn.Linear(256, classes))

    def features(self, images, number):
        if STORE is not None and number in STORE:
            return STORE[number]
        with torch.no_grad():
            found = self.backbone(images)
        if STORE is not None:
            STORE[number] = found
        return found

    def forward(self, images, number):
        return self.head(self.features(images, number))


def wings(n=160):
    labels = torch.arange(n) % 10
    return TensorDataset(torch.rand(n, 3, 64, 64) + labels[:, None, None, None] * 0.05, labels)


if __name__ == "__main__":
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    loader = DataLoader(wings(), batch_size=16)
    model = Probe(Backbone())
    optimizer = torch.optim.SGD(model.head.parameters(), lr=args.lr, momentum=0.9)
    step, start = 0, time.time()
    while step < args.steps:
        for number, (images, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(images, number), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step >= args.steps:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
