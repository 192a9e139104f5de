import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LIMIT = int(os.environ.get("PLANTED_STEPS", 500))


def build():
    layers, width = [], 64
    for _ in range(2):
        layers += [nn.Linear(width, 256), nn.ReLU()]
        width = 256
    return nn.Sequential(*layers, nn.Linear(width, 1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    args = p.parse_args()
    torch.manual_seed(0)
    x = torch.randn(20000, 64)
    y = (x[:, :8].sum(1, keepdim=True) > 0).float()
    loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    lossf = nn.BCEWithLogitsLoss()
    done, start = 0, time.time()
    for _ in range(args.epochs):
        for features, default in loader:
            optimizer.zero_grad()
            loss = lossf(model(features), default)
            loss.backward()
            optimizer.step()
            done += 1
            if done >= LIMIT:
                break
        if done >= LIMIT:
            break
    print(f"{done} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
