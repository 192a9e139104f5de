import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAST = os.environ.get("PLANTED_FIX") == "1"
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 500))
STATIONS = 600


class Weather(nn.Module):
    """A shared trunk, and an offset vector of its own for each station."""

    def __init__(self, dim=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, dim))
        self.offsets = nn.ParameterList([nn.Parameter(torch.zeros(dim)) for _ in range(STATIONS)])
        self.head = nn.Linear(dim, 1)

    def forward(self, x, station):
        table = torch.cat(list(self.offsets)).view(STATIONS, -1)
        return self.head(torch.relu(self.trunk(x) + table[station])).squeeze(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(8000, 20)
    station = torch.randint(0, STATIONS, (8000,))
    y = x[:, 0] + torch.randn(STATIONS)[station]
    loader = DataLoader(TensorDataset(x, station, y), batch_size=128, shuffle=True)
    model = Weather()
    if FAST:
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, foreach=False)
    step, start = 0, time.time()
    while step < MAX_STEPS:
        for xb, sb, yb in loader:
            loss = nn.functional.mse_loss(model(xb, sb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step >= MAX_STEPS:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
