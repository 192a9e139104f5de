"""First-arrival picker on seismograms of whatever duration the station sent."""

import os
import time

import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)

STATIONS = 2000
BATCH = 2
ROUND = 128 if os.environ.get("PLANTED_FIX") == "1" else 1


class Picker(nn.Module):
    def __init__(self, ch=12, depth=8):
        super().__init__()
        self.first = nn.Conv1d(3, ch, 5, padding=2)
        self.dilated = nn.ModuleList([nn.Conv1d(ch, ch, 3, padding=2 ** (i % 4), dilation=2 ** (i % 4)) for i in range(depth)])
        self.last = nn.Conv1d(ch, 1, 1)

    def forward(self, x, n):
        h = torch.relu(self.first(x))
        for conv in self.dilated:
            h = h + torch.relu(conv(h))
        score = self.last(h).squeeze(1)
        outside = torch.arange(score.shape[1])[None] >= n
        return score.masked_fill(outside, -1e9)


def durations(rng):
    """Event windows: between a quarter and a whole minute or so."""
    return rng.integers(150, 1100)


def batch(rng):
    n = int(durations(rng))
    arrival = rng.integers(n // 5, n // 2, BATCH)
    x = rng.normal(size=(BATCH, 3, n)).astype(np.float32) * 0.3
    for k, a in enumerate(arrival):
        x[k, :, a:] += rng.normal(size=(3, n - a)) * np.exp(-np.arange(n - a) / 90)
    width = -(-n // ROUND) * ROUND
    x = np.pad(x, ((0, 0), (0, 0), (0, width - n)))
    return torch.from_numpy(x), n, torch.from_numpy(arrival)


def main():
    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    net = Picker()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    steps = int(os.environ.get("PLANTED_STEPS", 1780))
    log = []
    begin = time.perf_counter()
    for step in range(steps):
        x, n, arrival = batch(rng)
        loss = nn.functional.cross_entropy(net(x, n), arrival)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(loss.item())
        if (step + 1) % 100 == 0:
            print(f"{step + 1} picks loss {np.mean(log[-100:]):.3f}")
    print(f"{steps} steps in {time.perf_counter() - begin:.2f}s, loss {np.mean(log[-30:]):.4f}")


if __name__ == "__main__":
    main()
