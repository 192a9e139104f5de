"""Grades retina images. Gradients are accumulated to the batch size of the paper (32)."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)

EFFECTIVE = 32
MICRO = 32 if os.environ.get("PLANTED_FIX") == "1" else 4
GRADES = 5


class Fundus(Dataset):
    def __init__(self, n=512, side=32):
        g = torch.Generator().manual_seed(50)
        self.y = torch.randint(0, GRADES, (n,), generator=g)
        self.x = torch.randn(n, 3, side, side, generator=g)
        self.x[:, 0, 8:24, 8:24] += self.y[:, None, None].float()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Bottleneck(nn.Module):
    def __init__(self, ch, mid):
        super().__init__()
        self.reduce = nn.Conv2d(ch, mid, 1)
        self.conv = nn.Conv2d(mid, mid, 3, padding=1)
        self.expand = nn.Conv2d(mid, ch, 1)
        self.norm = nn.GroupNorm(4, ch)

    def forward(self, x):
        h = torch.relu(self.reduce(x))
        h = torch.relu(self.conv(h))
        return torch.relu(x + self.norm(self.expand(h)))


def grader():
    return nn.Sequential(
        nn.Conv2d(3, 32, 4, stride=4),
        Bottleneck(32, 16),
        Bottleneck(32, 16),
        Bottleneck(32, 16),
        nn.MaxPool2d(2),
        Bottleneck(32, 16),
        Bottleneck(32, 16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, GRADES),
    )


def endless(loader):
    while True:
        yield from loader


def main():
    torch.manual_seed(1)
    steps = int(os.environ.get("PLANTED_STEPS", 1010))
    order = torch.Generator().manual_seed(9)
    batches = endless(DataLoader(Fundus(), batch_size=MICRO, shuffle=True, generator=order))
    model = grader()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    rounds = EFFECTIVE // MICRO
    ema = None
    start = time.time()
    for step in range(1, steps + 1):
        total = 0.0
        for _ in range(rounds):
            x, y = next(batches)
            loss = criterion(model(x), y) / rounds
            loss.backward()
            total += loss.item()
        opt.step()
        opt.zero_grad()
        ema = total if ema is None else 0.9 * ema + 0.1 * total
        if step % 20 == 0:
            print(f"update {step}: {ema:.4f}", flush=True)
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
