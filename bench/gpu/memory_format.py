"""Convolutions under autocast whose tensors lie channels first."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 128, 3, padding=1)]
    for _ in range(8):
        layers += [nn.BatchNorm2d(128), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    x, y = torch.randn(64, 3, 112, 112, device="cuda"), torch.randint(10, (64,), device="cuda")
    for _ in range(120):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(loss.item())


if __name__ == "__main__":
    main()
