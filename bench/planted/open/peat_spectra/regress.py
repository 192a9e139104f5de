import os
import time

import torch
from torch import nn

from bog import cores
from tensors import loaders


class SpectraNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 9, stride=2, padding=4),
            nn.SiLU(),
            nn.Conv1d(width, width, 5, padding=2),
            nn.SiLU(),
            nn.AvgPool1d(2),
            nn.Conv1d(width, 2 * width, 5, padding=2),
            nn.SiLU(),
            nn.AdaptiveAvgPool1d(8),
            nn.Flatten(),
        )
        self.head = nn.Linear(16 * width, 1)

    def forward(self, x):
        return self.head(self.net(x.unsqueeze(1))).squeeze(1)


def main():
    torch.manual_seed(55)
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 800))
    train, (held_x, held_y) = loaders(*cores(2400), batch=32)
    net = SpectraNet().to(held_x.dtype)  # weights like the data
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    done, began = 0, time.perf_counter()
    while done < steps:
        for x, y in train:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            done += 1
            if done >= steps:
                break
        with torch.no_grad():
            held = nn.functional.mse_loss(net(held_x), held_y).sqrt()
        print(f"after {done:4d} steps: loss {loss.item():.4f}, held-out rmse {held.item():.4f}")
    print(f"{done} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
