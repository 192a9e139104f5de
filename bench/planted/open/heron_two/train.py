"""Heron or cormorant? Nest camera crops with photometric and geometric jitter."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "src"))

import torch
from jitter import NestCrops
from report import Report
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)


class BirdNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.ModuleList([nn.Conv2d(1, 24, 3, padding=1), nn.Conv2d(24, 32, 3, padding=1), nn.Conv2d(32, 48, 3, padding=1)])
        self.fc = nn.Linear(48, 2)

    def forward(self, x):
        for conv in self.c:
            x = nn.functional.avg_pool2d(torch.relu(conv(x)), 2)
        return self.fc(x.mean((2, 3)))


def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("PLANTED_STEPS", 830))
    loader = DataLoader(NestCrops(), batch_size=16, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(3))
    net = BirdNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    report = Report("report.jsonl")
    i, ema, t0 = 0, None, time.time()
    while i < steps:
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            i += 1
            ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
            report.row(i, ema, net)
            if i == steps:
                break
    print(f"{i} steps in {time.time() - t0:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
