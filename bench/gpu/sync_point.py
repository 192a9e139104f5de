"""Asks for the loss and several norms at each step, so the host can never run ahead."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(24) for layer in (nn.Linear(512, 512), nn.ReLU())], nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(256, 512, device="cuda"), torch.randn(256, 1, device="cuda")
    total = 0.0
    for _ in range(400):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            total += parameter.grad.norm().item()
        optimizer.step()
        total += loss.item()
    print(total)


if __name__ == "__main__":
    main()
