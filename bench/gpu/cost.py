"""A tiny loop that times its own steps; prints the median CPU microseconds of a step."""

import time

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(8, 16, device="cuda"), torch.randn(8, 1, device="cuda")
    times, last = [], time.thread_time_ns()
    for step in range(3000):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            torch.cuda.synchronize()  # the launch queue never fills: a full one would count as the step's cost
        now = time.thread_time_ns()
        times.append(now - last)
        last = now
    times = sorted(times[200:])
    print(times[len(times) // 2] / 1000)


if __name__ == "__main__":
    main()
