"""Large matrix products in float32 at the default precision: no tensor cores."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")
    model = nn.Sequential(nn.Linear(4096, 8192), nn.GELU(), nn.Linear(8192, 4096)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(4096, 4096, device="cuda")
    for _ in range(80):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
