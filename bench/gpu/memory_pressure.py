"""Gives the allocator's cache back at every step, and has to ask for it again."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(12) for layer in (nn.Linear(1024, 1024), nn.ReLU())]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(8192, 1024, device="cuda")
    for _ in range(150):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
    print(loss.item())


if __name__ == "__main__":
    main()
