"""Large products in bfloat16 that keep the device busy: nothing to find."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(4096, 4096), nn.GELU())]).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    x = torch.randn(16384, 4096, device="cuda")
    for step in range(120):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
