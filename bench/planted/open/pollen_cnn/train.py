import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def conv(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class PollenNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.body = nn.Sequential(conv(3, 24), conv(24, 48, 2), conv(48, 48), conv(48, 96, 2), conv(96, 96))
        self.head = nn.Linear(96, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    labels = torch.randint(0, 5, (1280,))
    images = torch.randn(1280, 3, 32, 32) + labels[:, None, None, None] * 0.2
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    model = PollenNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    limit, step, start = int(os.environ.get("PLANTED_STEPS", 500)), 0, time.time()
    for _epoch in range(100):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step}: {loss.item():.4f}", flush=True)
            if step == limit:
                print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
                return
        scheduler.step()


if __name__ == "__main__":
    main()
